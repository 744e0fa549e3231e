package activities

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/testsuite"
	"golang.org/x/crypto/ssh"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/approval/signature"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/transcript"
)

// A forkServer is what a fork asks of the server: when its session was started, and what became of a turn.
type forkServer struct {
	client.Client
	began  time.Time
	status map[string]enumspb.WorkflowExecutionStatus // of turns, by workflow id
	res    agent.TurnResult                           // of those that have ended
	broken error
}

func (s *forkServer) WorkflowService() workflowservice.WorkflowServiceClient { return beginning{s: s} }

// A beginning is a service that has the first event of a history.
type beginning struct {
	workflowservice.WorkflowServiceClient
	s *forkServer
}

func (b beginning) GetWorkflowExecutionHistory(
	context.Context, *workflowservice.GetWorkflowExecutionHistoryRequest, ...grpc.CallOption,
) (*workflowservice.GetWorkflowExecutionHistoryResponse, error) {
	if b.s.broken != nil {
		return nil, b.s.broken
	}
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{
		Events: []*historypb.HistoryEvent{{EventTime: timestamppb.New(b.s.began)}},
	}}, nil
}

func (s *forkServer) DescribeWorkflow(_ context.Context, id, _ string) (*client.WorkflowExecutionDescription, error) {
	status, ok := s.status[id]
	switch {
	case s.broken != nil:
		return nil, s.broken
	case !ok:
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	d := &client.WorkflowExecutionDescription{}
	d.Status = status
	return d, nil
}

func (s *forkServer) GetWorkflow(context.Context, string, string) client.WorkflowRun {
	return endedRun{res: s.res}
}

type endedRun struct {
	client.WorkflowRun
	res agent.TurnResult
}

func (r endedRun) Get(_ context.Context, v any) error {
	*v.(*agent.TurnResult) = r.res
	return nil
}

// forks is a world with a session of three turns that have ended, and a server that says so.
func forks(t *testing.T, url string) (*world, *forkServer, []agent.Head) {
	t.Helper()
	w := newWorld(t, url, newFake(t, spec(agent.ClassOnce), nil))
	s := &forkServer{began: noon, status: map[string]enumspb.WorkflowExecutionStatus{}}
	w.Client = s
	return w, s, w.ended(w.scope, nil, agent.Head{}, 3)
}

// ended gives a session n turns that have ended and returns their heads, the one before them first.
func (w *world) ended(scope agent.Scope, origin *agent.Origin, head agent.Head, n int) []agent.Head {
	w.t.Helper()
	heads := []agent.Head{head}
	for turn := 1; turn <= n; turn++ {
		long := strings.Repeat(fmt.Sprintf("turn %d of %s. ", turn, scope), 500)
		for _, e := range []transcript.Entry{{Role: agent.RoleUser, Text: "go on"}, {Role: agent.RoleAssistant, Text: long}} {
			var err error
			if head, err = w.Log.Append(w.t.Context(), scope, head, []transcript.Entry{e}); err != nil {
				w.t.Fatal(err)
			}
		}
		w.closes(agent.CloseInput{
			Scope: scope, Turn: turn, Agent: "clerk", Result: agent.TurnResult{Status: agent.StatusDone, Head: head}, Origin: origin,
		})
		heads = append(heads, head)
	}
	return heads
}

func (w *world) closes(in agent.CloseInput) {
	w.t.Helper()
	if _, err := w.close(w.t.Context(), w.snap, in); err != nil {
		w.t.Fatal(err)
	}
}

// fork is the argument of a fork of the world's session.
func (w *world) fork(session string, from agent.Scope, turn int) agent.ForkInput {
	return agent.ForkInput{
		Scope: agent.NewScope(session, "the run of "+session), Agent: "clerk", Serial: 2,
		Fork: agent.Fork{From: from, Turn: turn, Approver: "alice", Reason: "another try", Time: noon},
	}
}

func (w *world) forked(t *testing.T, in agent.ForkInput) (agent.ForkResult, error) {
	t.Helper()
	env := (&testsuite.WorkflowTestSuite{}).NewTestActivityEnvironment()
	env.RegisterActivity(w.Fork)
	var res agent.ForkResult
	val, err := env.ExecuteActivity(w.Fork, in)
	if err == nil {
		err = val.Get(&res)
	}
	return res, err
}

func (w *world) mustFork(t *testing.T, in agent.ForkInput) agent.Origin {
	t.Helper()
	res, err := w.forked(t, in)
	if err != nil {
		t.Fatal(err)
	}
	if res.Store != w.Store.ID() || res.Serial != w.snap.Serial {
		t.Errorf("store %q, serial %d", res.Store, res.Serial)
	}
	return res.Origin
}

// sameTalk holds what two sessions read up to a head against each other.
func (w *world) sameTalk(a, b agent.Scope, h agent.Head) {
	w.t.Helper()
	var said [2][]string
	for i, scope := range []agent.Scope{a, b} {
		l := transcript.New(w.Store, 0)
		c, err := l.Read(w.t.Context(), scope, h)
		if err != nil || len(c.Gaps) > 0 {
			w.t.Fatalf("%s: gaps %v, %v", scope, c.Gaps, err)
		}
		texts, lost, err := l.Texts(w.t.Context(), scope, c.Entries)
		if err != nil || len(lost) > 0 {
			w.t.Fatalf("%s: lost %v, %v", scope, lost, err)
		}
		said[i] = texts
	}
	if diff := cmp.Diff(said[0], said[1]); diff != "" {
		w.t.Errorf("%s reads otherwise than %s:\n%s", b, a, diff)
	}
}

// untouched fails when a fork that was refused has left something.
func (w *world) untouched(name string, scope agent.Scope) {
	w.t.Helper()
	for _, kind := range []store.Kind{store.KindSegments, store.KindBodies, store.KindClosings, store.KindIntents} {
		if names, err := w.Store.Space(scope).List(w.t.Context(), kind, ""); err != nil || len(names) > 0 {
			w.t.Errorf("%s: the refused fork has %s %q, %v", name, kind, names, err)
		}
	}
}

// newSigner returns a key as a person has one.
func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	k, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func signedFork(t *testing.T, k ssh.Signer, in agent.ForkInput) agent.Fork {
	t.Helper()
	var err error
	if in.Fork.Signature, err = signature.Sign(k, approval.ForkBytes(in.Session, in.Agent, in.Fork)); err != nil {
		t.Fatal(err)
	}
	return in.Fork
}

// ruin puts noise in the place of an object of a store in a folder.
func ruin(t *testing.T, dir string, scope agent.Scope, kind store.Kind, name string) {
	t.Helper()
	file := filepath.Join(dir, scope.String(), string(kind), name)
	if _, err := os.Stat(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("noise"), 0o600); err != nil {
		t.Fatal(err)
	}
}
