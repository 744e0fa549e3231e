package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// A lab is the server, the model and the workers that everything is measured on.
type lab struct {
	dir     string
	opts    options
	server  *devserver.Server
	client  client.Client
	model   *modeltest.Server
	workers map[variant]*process

	mu   sync.Mutex
	last int // number of the last job
}

// The agents of the configuration: one whose tool acts and one whose tool reads.
const (
	agentActs  = "doer"
	agentReads = "reader"
)

func open(ctx context.Context, o options) (_ *lab, err error) {
	l := &lab{workers: map[variant]*process{}, opts: o}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.dir, err = os.MkdirTemp("", "holdfast-bench-"); err != nil {
		return nil, err
	}
	if l.server, err = devserver.Start(ctx, devserver.Options{Headless: true, DBFile: l.database()}); err != nil {
		return nil, err
	}
	if l.client, err = client.Dial(client.Options{HostPort: l.server.Address(), Logger: quiet()}); err != nil {
		return nil, err
	}
	if l.model, err = modeltest.Start(modeltest.Config{Func: script, Forget: true}); err != nil {
		return nil, err
	}
	for _, v := range []variant{byFloor, byNaive} {
		if l.workers[v], err = spawn("-variant", string(v), "-address", l.server.Address(), "-model", l.model.URL(), "-profile", o.profile); err != nil {
			return nil, err
		}
	}
	l.workers[holdfast], err = l.holdfast(string(holdfast), "48KiB")
	return l, err
}

// database is the server's, as "holdfast dev" has it, or empty for one in memory. What is durable is
// compared with what is durable: both it and the store wait for the disk, or neither does.
func (l *lab) database() string {
	if l.opts.memory {
		return ""
	}
	return filepath.Join(l.dir, "temporal.db")
}

func (l *lab) storeURL(name string) string {
	if l.opts.memory {
		return "mem://"
	}
	return "file://" + filepath.Join(l.dir, "store-"+name)
}

// holdfast starts a Holdfast worker of its own configuration. The model is shown up to shown of a result.
func (l *lab) holdfast(queue, shown string) (*process, error) {
	path := filepath.Join(l.dir, queue+".yaml")
	yaml := fmt.Sprintf(`serial: 1
store: {url: %q}
worker: {task_queue: %s}
limits: {result: %s}
policy: {rules: [{name: everything, then: allow}], duplicates: allow, uncertain: tell}
models:
  scripted: {base_url: %q}
agents:
  %s: {instructions: %q, model: scripted, tools: [%s], limits: {steps: 5000}}
  %s: {instructions: %q, model: scripted, tools: [%s], limits: {steps: 5000}}
`, l.storeURL(queue), queue, shown, l.model.URL(), agentActs, instructions, toolActs, agentReads, instructions, toolReads)
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		return nil, err
	}
	return spawn("-variant", string(holdfast), "-address", l.server.Address(), "-config", path, "-profile", l.opts.profile)
}

func (l *lab) close() {
	for _, w := range l.workers {
		if w != nil {
			w.stop()
		}
	}
	if l.model != nil {
		_ = l.model.Close()
	}
	if l.client != nil {
		l.client.Close()
	}
	if l.server != nil {
		_ = l.server.Stop()
	}
	if l.dir != "" {
		_ = os.RemoveAll(l.dir)
	}
}

// id returns an id that no other job has.
func (l *lab) id(v variant) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	return fmt.Sprintf("%s-%06d", v, l.last)
}

// loop does a job with a hand-written loop and returns the workflow's id.
func (l *lab) loop(ctx context.Context, v variant, j job) (string, error) {
	id := l.id(v)
	run, err := l.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: string(v)},
		loopWorkflow, loopInput{ID: id, Text: j.text()})
	if err != nil {
		return id, err
	}
	return id, run.Get(ctx, nil)
}

// send gives a session a message, as "holdfast run" does, and waits for the end of its n-th turn. It returns
// the turn's workflow id.
func (l *lab) send(ctx context.Context, queue, agentName, session string, n int, j job) (string, error) {
	op := l.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: session, TaskQueue: queue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, agent.WorkflowSession, agent.SessionInput{Agent: agentName})
	m := agent.Message{ID: fmt.Sprintf("m%d", n), Text: j.text()}
	h, err := l.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: op,
		UpdateOptions: client.UpdateWorkflowOptions{
			WorkflowID: session, UpdateName: agent.UpdateSend, UpdateID: m.ID, Args: []any{m},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		return "", err
	}
	if err := h.Get(ctx, nil); err != nil {
		return "", err
	}
	id := agent.TurnID(session, n)
	var res agent.TurnResult
	if err := l.started(ctx, session, id); err != nil {
		return id, err
	}
	if err := l.client.GetWorkflow(ctx, id, "").Get(ctx, &res); err != nil {
		return id, err
	}
	if res.Status != agent.StatusDone || res.Steps != j.Steps+1 {
		return id, fmt.Errorf("turn %q of %s ended as %s after %d steps", id, j, res.Status, res.Steps)
	}
	return id, nil
}

// started waits until a session has started the turn of that id. It tails the session's history, as "holdfast
// run" does: asking again and again would be work for the server.
func (l *lab) started(ctx context.Context, session, turn string) error {
	for {
		it := l.client.GetWorkflowHistory(ctx, session, "", true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for it.HasNext() {
			e, err := it.Next()
			if err != nil {
				return err
			}
			if e.GetChildWorkflowExecutionStartedEventAttributes().GetWorkflowExecution().GetWorkflowId() == turn {
				return nil
			}
		}
		// The run has continued as new.
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// turn does a job with a variant and returns the id of the workflow whose steps are the job's.
func (l *lab) turn(ctx context.Context, v variant, c cell) (string, error) {
	if v != holdfast {
		return l.loop(ctx, v, c.job)
	}
	name := agentActs
	if c.Reads {
		name = agentReads
	}
	return l.send(ctx, string(holdfast), name, l.id(holdfast), 1, c.job)
}

// terminated says whether a workflow was ended by the server.
func terminated(err error) bool {
	var t *temporal.TerminatedError
	return errors.As(err, &t)
}
