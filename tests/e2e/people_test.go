package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/approval/signature"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// A person is an approver with a key that this test made.
type person struct {
	name string
	path string // of the private key
	line string // of the public key, as the policy has it
	key  ssh.Signer
}

func newPerson(t *testing.T, name string) person {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, name)
	if err != nil {
		t.Fatal(err)
	}
	p := person{name: name, path: filepath.Join(t.TempDir(), name)}
	if p.key, err = ssh.NewSignerFromKey(private); err != nil {
		t.Fatal(err)
	}
	p.line = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(p.key.PublicKey())))
	if err := os.WriteFile(p.path, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	return p
}

// approvers is the policy's member of that name.
func approvers(people ...person) string {
	var out []string
	for _, p := range people {
		out = append(out, fmt.Sprintf("%s: {keys: [%q]}", p.name, p.line))
	}
	return "approvers: {" + strings.Join(out, ", ") + "}"
}

// says is a person's signed decision on what waits.
func (p person) says(t *testing.T, s agent.Scope, a agent.Approval, c agent.Choice) agent.ApprovalDecision {
	t.Helper()
	d := agent.ApprovalDecision{
		ID: a.ID, Digest: a.Action, Choice: c, Approver: p.name, Reason: "a test", Time: time.Now().UTC(), Ref: rand.Text(),
	}
	var err error
	if d.Signature, err = signature.Sign(p.key, approval.DecisionBytes(s, d)); err != nil {
		t.Fatal(err)
	}
	return d
}

// orders is the script of a model that does what the message says: each line is a tool and its arguments, one call
// in each step, or a line of several calls apart by "; ". Then it is done.
func orders(r modeltest.Request) modeltest.Step {
	lines := strings.Split(strings.TrimSpace(r.User()), "\n")
	answered := len(r.Results())
	for i, line := range lines {
		calls := strings.Split(line, "; ")
		if answered >= len(calls) {
			answered -= len(calls)
			continue
		}
		var want []modeltest.Call
		for j, c := range calls {
			name, args, _ := strings.Cut(c, " ")
			want = append(want, modeltest.Call{ID: fmt.Sprintf("call_%d_%d_%d", len(r.Messages), i, j), Name: name, Args: args})
		}
		return modeltest.Want(want...)
	}
	return modeltest.Say("done")
}

// query asks a turn of the session.
func query[T any](r *rig, session string, turn int, name string) (v T, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	q, err := r.client.QueryWorkflow(ctx, agent.TurnID(r.prefix+session, turn), "", name)
	if err != nil {
		return v, err
	}
	return v, q.Get(&v)
}

// pending waits until so many requests wait in a turn.
func (r *rig) pending(session string, turn, n int) (agent.Scope, []agent.Approval) {
	r.t.Helper()
	var out []agent.Approval
	v := r.approvals(session, turn, fmt.Sprintf("%d requests wait", n), func(v agent.ApprovalsView) bool {
		out = nil
		for _, a := range v.Approvals {
			if a.Outcome == agent.OutcomePending {
				out = append(out, a)
			}
		}
		return len(out) == n
	})
	return v.Scope, out
}

// approvals waits until the answer of a turn's query is as wanted.
func (r *rig) approvals(session string, turn int, what string, ok func(agent.ApprovalsView) bool) (v agent.ApprovalsView) {
	r.t.Helper()
	r.eventually(session+": "+what, func() bool {
		var err error
		v, err = query[agent.ApprovalsView](r, session, turn, agent.QueryApprovals)
		return err == nil && ok(v)
	})
	return v
}

// effects waits until the answer of a turn's query is as wanted.
func (r *rig) effects(session string, turn int, what string, ok func(agent.EffectsView) bool) (v agent.EffectsView) {
	r.t.Helper()
	r.eventually(session+": "+what, func() bool {
		var err error
		v, err = query[agent.EffectsView](r, session, turn, agent.QueryEffects)
		return err == nil && ok(v)
	})
	return v
}

// ledger returns what a turn says of its effects.
func (r *rig) ledger(session string, turn int) []agent.Effect {
	r.t.Helper()
	return r.effects(session, turn, "it answers", func(agent.EffectsView) bool { return true }).Effects
}

// signal sends a signal to a turn, whether a worker runs or not.
func (r *rig) signal(session string, turn int, name string, arg any) {
	r.t.Helper()
	if err := r.client.SignalWorkflow(r.t.Context(), agent.TurnID(r.prefix+session, turn), "", name, arg); err != nil {
		r.t.Fatal(err)
	}
}

// accepted waits until a decision counts.
func (r *rig) accepted(session string, turn int, d agent.ApprovalDecision) {
	r.t.Helper()
	r.approvals(session, turn, "the decision of "+d.Approver+" is accepted", func(v agent.ApprovalsView) bool {
		for _, a := range v.Approvals {
			for _, have := range a.Decisions {
				if have.Ref == d.Ref {
					return true
				}
			}
		}
		for _, f := range v.Refused {
			if f.Ref == d.Ref {
				r.t.Fatalf("%s: the decision of %s is refused: %s", session, d.Approver, f.Why)
			}
		}
		return false
	})
}

// refused waits until a decision is refused, and returns why.
func (r *rig) refused(session string, turn int, ref string) (why string) {
	r.t.Helper()
	r.approvals(session, turn, "the decision is refused", func(v agent.ApprovalsView) bool {
		for _, f := range v.Refused {
			if f.Ref == ref {
				why = f.Why
			}
		}
		return why != ""
	})
	return why
}

// passed waits until so many passings of a failpoint are logged.
func (r *rig) passed(point string, n int) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("%s is passed %d times", point, n), func() bool {
		b, err := os.ReadFile(r.points)
		return err == nil && strings.Count(string(b), point+" ") >= n
	})
}

// inForce waits until a worker has taken the configuration of that serial.
func (r *rig) inForce(serial int) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("serial %d is in force", serial), func() bool {
		return strings.Contains(r.log.String(), fmt.Sprintf(`"configuration in force" serial=%d`, serial))
	})
}

// holdfast runs the command and returns what it printed and its exit code.
func (r *rig) holdfast(args ...string) (stdout, stderr string, exit int) {
	r.t.Helper()
	return r.command(parts.binary, args...)
}

func (r *rig) command(name string, args ...string) (stdout, stderr string, exit int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.dir, &out, &errs
	cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+r.addr, "TEMPORAL_NAMESPACE=default", "HOLDFAST_KEY=", "HOLDFAST_APPROVER=")
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		r.t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
