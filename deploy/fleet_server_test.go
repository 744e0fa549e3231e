package deploy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/worker"
	"github.com/holdfast-run/holdfast/workflows"
)

// patience bounds every wait; nothing waits for it when all goes well.
const patience = 90 * time.Second

// TestBuildsOnARealServer is one server for all that needs one. Each test has a deployment of its own.
func TestBuildsOnARealServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs the Temporal dev server")
	}
	server := startServer(t)
	c := dialFor(t, server.Address())
	for name, test := range map[string]func(*port){
		"names that are not there":            namesThatAreNotThere,
		"what a build says of itself":         whatABuildSaysOfItself,
		"the builds are compared":             theBuildsAreCompared,
		"a run that cannot be replayed":       aRunThatCannotBeReplayed,
		"a ramp comes and goes":               aRampComesAndGoes,
		"resumed sessions cross first":        resumedSessionsCrossFirst,
		"what would not replay stays":         whatWouldNotReplayStays,
		"a promotion takes over":              aPromotionTakesOver,
		"a promotion of what cannot go on":    aPromotionOfWhatCannotGoOn,
		"a build is drained when turns end":   aBuildIsDrainedWhenTurnsEnd,
		"held turns are moved":                heldTurnsAreMoved,
		"a build that takes work":             aBuildThatTakesWork,
		"held turns of a build that is gone":  heldTurnsOfABuildThatIsGone,
		"a session that a canary left behind": aSessionThatACanaryLeftBehind,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newPort(t, server.Address(), c, name))
		})
	}
}

// startServer starts one that ends with the test, after the last of its parallel subtests.
func startServer(t *testing.T, dynamic ...string) *devserver.Server {
	t.Helper()
	server, err := devserver.Start(context.Background(), devserver.Options{Headless: true, Dynamic: dynamic})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	return server
}

func quiet() sdklog.Logger { return sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)) }

// A port is one test's world: a deployment, and the workers of its builds.
type port struct {
	*testing.T
	Fleet
	address, dir string
	config       []byte
	stops        map[string]func()
}

const portConfig = `
serial: 1
store: {url: "file://%s"}
models:
  scripted: {base_url: "%s", prices: {input: 1, output: 4}}
agents:
  helper: {instructions: Help., model: scripted, tools: [note, look]}
  careful: {instructions: Help., model: scripted, tools: [note], upgrade: ask}
  fixed: {instructions: Help., model: scripted, tools: [note], upgrade: pin}
worker: {stop_timeout: 1s, sticky_timeout: 1s, task_queue: %q}
`

func newPort(t *testing.T, address string, c client.Client, name string) *port {
	name = strings.ReplaceAll(name, " ", "-")
	p := &port{T: t, address: address, dir: t.TempDir(), stops: map[string]func(){}}
	p.Fleet = Fleet{Client: c, Namespace: client.DefaultNamespace, Deployment: name}
	model := modeltest.ForTest(t, modeltest.Config{Func: answers})
	p.config = fmt.Appendf(nil, portConfig, filepath.Join(p.dir, "store"), model.URL(), name)
	t.Cleanup(func() {
		for _, stop := range p.stops {
			stop()
		}
	})
	return p
}

// answers is the model: "note x" wants to write, which people are asked about, "look" reads.
func answers(r modeltest.Request) modeltest.Step {
	said, results := r.User(), len(r.Results())
	name, text, _ := strings.Cut(said, " ")
	if results == 0 && (name == "note" || name == "look") {
		return modeltest.Want(modeltest.Call{ID: "call", Name: name, Args: fmt.Sprintf(`{"text":%q}`, text)})
	}
	return modeltest.Say("You said: " + said)
}

func tools() []tool.Tool {
	type text struct {
		Text string `json:"text"`
	}
	note, err1 := tool.New(tool.Spec{Name: "note", Class: agent.ClassIdempotent},
		func(_ context.Context, _ tool.Call, in text) (string, error) { return "noted " + in.Text, nil })
	look, err2 := tool.New(tool.Spec{Name: "look", Class: agent.ClassRead},
		func(_ context.Context, _ tool.Call, in text) (string, error) { return "seen " + in.Text, nil })
	if err := errors.Join(err1, err2); err != nil {
		panic(err)
	}
	return []tool.Tool{note, look}
}

// start starts a worker of a build and waits until the server knows it.
func (p *port) start(build string) {
	p.Helper()
	cfg, err := worker.Parse("holdfast.yaml", p.dir, p.config)
	if err != nil {
		p.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- worker.Options{
			Client: &client.Options{HostPort: p.address}, Health: "off", Deployment: p.Deployment, Build: build,
			Logger: slog.New(slog.DiscardHandler), Ready: func(worker.Status) { close(ready) },
		}.Run(ctx, cfg, tools()...)
	}()
	select {
	case <-ready:
	case err := <-done:
		cancel()
		p.Fatalf("worker: %v", err)
	}
	p.stops[build] = sync.OnceFunc(func() { cancel(); <-done })
	p.await(build)
	p.until(build+" says what it understands", func() bool {
		d, err := p.Describe(p.Context())
		if err != nil {
			return false
		}
		b, err := d.Build(build)
		return err == nil && b.Table != nil
	})
}

func (p *port) stop(build string) { p.stops[build]() }

// await waits until the server knows a build and its workflow task queue.
func (p *port) await(build string) {
	p.Helper()
	p.until("the build "+build+" is there", func() bool {
		d, err := p.Describe(context.Background())
		if err != nil {
			return false
		}
		b, err := d.Build(build)
		return err == nil && len(b.queues) > 0 && b.Polls()
	})
}

// startOdd starts a worker of a build whose sessions are of another make: one timer and nothing else.
func (p *port) startOdd(build string) {
	p.Helper()
	w := sdkworker.New(p.Client, p.Deployment, sdkworker.Options{
		DeploymentOptions: sdkworker.DeploymentOptions{
			UseVersioning: true, DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
			Version: sdkworker.WorkerDeploymentVersion{DeploymentName: p.Deployment, BuildID: build},
		},
	})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, _ agent.SessionInput) error { return workflow.Sleep(ctx, time.Hour) },
		workflow.RegisterOptions{Name: agent.WorkflowSession, VersioningBehavior: workflow.VersioningBehaviorAutoUpgrade})
	if err := w.Start(); err != nil {
		p.Fatal(err)
	}
	p.stops[build] = sync.OnceFunc(w.Stop)
	p.await(build)
}

func ofAgent(name string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(temporal.NewSearchAttributeKeyKeyword(agent.AttributeAgent).ValueSet(name))
}

// sendOdd starts a session of that make.
func (p *port) sendOdd(id string) {
	p.Helper()
	o := client.StartWorkflowOptions{ID: id, TaskQueue: p.Deployment, TypedSearchAttributes: ofAgent("helper")}
	if _, err := p.Client.ExecuteWorkflow(p.Context(), o, agent.WorkflowSession, agent.SessionInput{Agent: "helper"}); err != nil {
		p.Fatal(err)
	}
	p.until(id+" is on its build", func() bool { return p.indexed(id, and(isOpen, p.within())) })
}

func (p *port) until(what string, ok func() bool) {
	p.Helper()
	for deadline := time.Now().Add(patience); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			p.Fatalf("never: %s", what)
		}
	}
}

func (p *port) promote(build string) *Promotion {
	p.Helper()
	var out *Promotion
	p.until("build "+build+" is promoted", func() bool {
		var err error
		if out, err = p.Promote(context.Background(), build, false); errors.Is(err, ErrChanged) {
			return false
		} else if err != nil {
			p.Fatal(err)
		}
		return true
	})
	return out
}

// send gives a session a message, starting it if it is not there.
func (p *port) send(session, agentName, text string) {
	p.Helper()
	op := p.Client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: session, TaskQueue: p.Deployment, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		TypedSearchAttributes: ofAgent(agentName),
	}, agent.WorkflowSession, agent.SessionInput{Agent: agentName})
	h, err := p.Client.UpdateWithStartWorkflow(p.Context(), client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: op,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: session, UpdateName: agent.UpdateSend, Args: []any{agent.Message{ID: strings.ReplaceAll(text, " ", "-"), Text: text, From: "tester"}},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err == nil {
		err = h.Get(p.Context(), nil)
	}
	if err != nil {
		p.Fatal(err)
	}
}

// open says whether a run is open, and ended whether it has ended, as the index that searches ask has it.
func (p *port) indexed(id, more string) bool {
	n, err := p.count(context.Background(), and("WorkflowId = "+literal(id), more))
	return err == nil && n == 1
}

// talk has a turn that ends.
func (p *port) talk(session, agentName, text string, turn int) {
	p.Helper()
	p.send(session, agentName, text)
	p.until(agent.TurnID(session, turn)+" ends", func() bool {
		return p.indexed(agent.TurnID(session, turn), "ExecutionStatus = 'Completed'")
	})
	// Until the session has heard of it, its next task is still to come.
	p.until(session+" is idle", func() bool {
		r, err := p.Client.DescribeWorkflow(context.Background(), session, "")
		return err == nil && r.RawResponse.GetPendingWorkflowTask() == nil && len(r.RawResponse.GetPendingChildren()) == 0
	})
}

// ask has a turn that waits for an approval.
func (p *port) ask(session, agentName, text string, turn int) {
	p.Helper()
	p.send(session, agentName, text)
	p.until(agent.TurnID(session, turn)+" waits", func() bool { return p.indexed(agent.TurnID(session, turn), and(isOpen, waitsPeople)) })
}

// approve approves what a turn asks for. The request stands in the turn's own word, which its build's worker gives.
func (p *port) approve(turn string) {
	p.Helper()
	var v agent.ApprovalsView
	p.until(turn+" says what it asks for", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		q, err := p.Client.QueryWorkflow(ctx, turn, "", agent.QueryApprovals)
		return err == nil && q.Get(&v) == nil && len(v.Approvals) == 1
	})
	a := v.Approvals[0]
	p.decide(turn, agent.ApprovalDecision{ID: a.ID, Digest: a.Action, Choice: agent.ChoiceApprove, Approver: "alice", Ref: "r"})
}

func (p *port) decide(turn string, d agent.ApprovalDecision) {
	p.Helper()
	if err := p.Client.SignalWorkflow(p.Context(), turn, "", agent.SignalApproval, d); err != nil {
		p.Fatal(err)
	}
}

// on returns the build that a run is on, and whether it is held there.
func (p *port) place(id string) (build string, held bool) {
	p.Helper()
	runs, err := p.some(context.Background(), and("WorkflowId = "+literal(id), "ExecutionStatus != 'ContinuedAsNew'"), 1)
	if err != nil || len(runs) == 0 {
		p.Fatalf("%s: %v, %v", id, runs, err)
	}
	_, build, _ = strings.Cut(text(runs[0], attributeVersion), ":")
	return build, text(runs[0], attributeBehavior) == "Pinned"
}

func (p *port) stands(id, build string, held bool) {
	p.Helper()
	p.until(fmt.Sprintf("%s is on %s, held: %v", id, build, held), func() bool {
		at, h := p.place(id)
		return at == build && h == held
	})
}

// upgrades are those of the configuration.
func (p *port) upgrades() Upgrades {
	p.Helper()
	cfg, err := worker.Parse("holdfast.yaml", p.dir, p.config)
	if err != nil {
		p.Fatal(err)
	}
	return func(name string) (agent.Upgrade, bool) {
		a, ok := cfg.Agents[name]
		return a.Upgrade, ok
	}
}

// try replays on the workflows of this build.
func (p *port) try() Trial {
	return Gate{Client: p.Client, Namespace: p.Namespace, Register: func(r sdkworker.WorkflowRegistry) {
		workflows.Register(r, workflows.Options{Replay: true})
	}}.Try
}

// canary moves sessions that replay here. The build has to be published as this program.
func (p *port) canary(build string, percent float64) CanaryOptions {
	return CanaryOptions{Build: build, Percent: percent, Upgrade: p.upgrades(), Try: p.try(), Binary: worker.OwnTable().Binary}
}

func (p *port) mover() *Mover {
	return &Mover{Binary: worker.OwnTable().Binary, Upgrade: p.upgrades(), Try: p.try()}
}

func (p *port) publish(build string) {
	p.Helper()
	if err := worker.Publish(p.Context(), p.Client, p.Deployment, build, 1); err != nil {
		p.Fatal(err)
	}
}

func ids(runs []*workflowpb.WorkflowExecutionInfo) (out []string) {
	for _, r := range runs {
		out = append(out, r.GetExecution().GetWorkflowId())
	}
	return out
}

func dialFor(t *testing.T, address string) client.Client {
	t.Helper()
	c, err := client.Dial(client.Options{HostPort: address, Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := worker.Setup(t.Context(), c, client.DefaultNamespace); err != nil {
		t.Fatal(err)
	}
	return c
}
