package world

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/approval/signature"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// A person is an approver with a key of a world's own.
type person struct {
	name string
	line string // of the public key, as the policy has it
	key  ssh.Signer
}

func newPerson(name string) (person, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return person{}, err
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return person{}, err
	}
	return person{name: name, key: key, line: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))}, nil
}

// Send gives the session a message, starting the session if need be. It returns when the message is accepted, for
// which a worker must run before ctx ends. Sending again under the same id is harmless.
func (w *World) Send(ctx context.Context, id, text string) error {
	c := w.Server.Client()
	op := c.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: w.Session, TaskQueue: w.Queue, WorkflowTaskTimeout: cell.WorkflowTask,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, agent.WorkflowSession, agent.SessionInput{Agent: agentName})
	h, err := c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: op,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: w.Session, UpdateName: agent.UpdateSend, UpdateID: id, Args: []any{agent.Message{ID: id, Text: text}},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return err
	}
	return h.Get(ctx, nil)
}

// Decision is signed by the world's approver. It is to be signalled to the turn that asked.
func (w *World) Decision(s agent.Scope, a agent.Approval, c agent.Choice) (d agent.ApprovalDecision, err error) {
	d = agent.ApprovalDecision{
		ID: a.ID, Digest: a.Action, Choice: c, Approver: w.approver.name, Reason: "as agreed", Time: time.Now().UTC(), Ref: rand.Text(),
	}
	d.Signature, err = signature.Sign(w.approver.key, approval.DecisionBytes(s, d))
	return d, err
}

// Signal sends a signal to a turn, or to the session as turn 0, whether a worker runs or not.
func (w *World) Signal(ctx context.Context, turn int, name string, v any) error {
	id := w.Session
	if turn > 0 {
		id = agent.TurnID(w.Session, turn)
	}
	return w.Server.Client().SignalWorkflow(ctx, id, "", name, v)
}
