package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/worker"
)

// An odd is one case of tests/cases/turns.json in one way of asking.
type odd struct {
	modeltest.Case
	name   string
	stream bool
	model  *modeltest.Server
}

// oddTools are the tools that the cases speak of. They count how often their bodies run in each session,
// and keep the arguments that pay got.
type oddTools struct {
	mu   sync.Mutex
	ran  map[string]map[string]int
	paid map[string][]string
}

func (o *oddTools) count(c tool.Call, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ran[c.Scope.Session] == nil {
		o.ran[c.Scope.Session] = map[string]int{}
	}
	o.ran[c.Scope.Session][name]++
	if name == "pay" {
		o.paid[c.Scope.Session] = append(o.paid[c.Scope.Session], c.Args)
	}
}

// A counted tool is a Go tool that answers with out.
func counted[In any](t *testing.T, o *oddTools, name string, class agent.Class, out func(In) ([]byte, error)) tool.Tool {
	t.Helper()
	made, err := tool.New(tool.Spec{Name: name, Description: name, Class: class}, func(_ context.Context, c tool.Call, in In) ([]byte, error) {
		o.count(c, name)
		return out(in)
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func text[In any](s string) func(In) ([]byte, error) {
	return func(In) ([]byte, error) { return []byte(s), nil }
}

type (
	none  struct{}
	idArg struct {
		ID string `json:"id"`
	}
	noting struct {
		Text string `json:"text"`
	}
	payment struct {
		To     string  `json:"to"`
		Amount float64 `json:"amount"`
		Ref    *int64  `json:"ref,omitempty"`
	}
	manyPayments struct {
		Items []payment `json:"items"`
	}
	blobOf struct {
		N    int    `json:"n"`
		Kind string `json:"kind,omitempty"`
	}
)

func (o *oddTools) all(t *testing.T) []tool.Tool {
	t.Helper()
	return []tool.Tool{
		counted(t, o, "list_items", agent.ClassRead, text[none]("1, 2, 3")),
		counted(t, o, "get_item", agent.ClassRead, func(in idArg) ([]byte, error) { return []byte("item " + in.ID), nil }),
		counted(t, o, "add_note", agent.ClassOnce, text[noting]("noted")),
		counted(t, o, "pay", agent.ClassOnce, text[payment]("paid")),
		counted(t, o, "pay_many", agent.ClassOnce, text[manyPayments]("paid")),
		counted(t, o, "empty", agent.ClassRead, text[none]("")),
		counted(t, o, "blob", agent.ClassRead, func(in blobOf) ([]byte, error) {
			if in.Kind == "binary" {
				return []byte(strings.Repeat("\x00\xff\xfe\x80", in.N/4+1))[:in.N], nil
			}
			return []byte(strings.Repeat("x", in.N)), nil
		}),
	}
}

func TestOddModelsNeverCrashStallOrRunWhatWasNotFinished(t *testing.T) {
	t.Parallel()
	cases := oddCases(t)
	tools := &oddTools{ran: map[string]map[string]int{}, paid: map[string][]string{}}
	queue := serveOdd(t, cases, tools)
	c, err := client.Dial(client.Options{HostPort: parts.server.Address(), Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r := &rig{t: t, client: c, queue: queue, prefix: string(agent.DigestOf([]byte(queue))[:8]) + "-"}
	t.Run("cases", func(t *testing.T) {
		for _, o := range cases {
			t.Run(o.name, func(t *testing.T) {
				t.Parallel()
				mine := *r
				mine.t = t
				mine.odd(o, tools)
			})
		}
	})
}

func oddCases(t *testing.T) []odd {
	t.Helper()
	loaded, err := modeltest.Load("../cases/turns.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []odd
	for _, c := range loaded {
		if c.Stream == nil || *c.Stream {
			cases = append(cases, odd{Case: c, name: c.ID, stream: true})
		}
		if c.Stream == nil || !*c.Stream {
			cases = append(cases, odd{Case: c, name: c.ID + "-plain"})
		}
	}
	for i := range cases {
		cases[i].model = modeltest.ForTest(t, modeltest.Config{Steps: cases[i].Steps})
	}
	return cases
}

// serveOdd runs a worker with one model and one agent for each case.
func serveOdd(t *testing.T, cases []odd, tools *oddTools) string {
	t.Helper()
	dir := t.TempDir()
	queue := "odd-" + filepath.Base(dir) + fmt.Sprint(time.Now().UnixNano())
	var models, agents strings.Builder
	for _, o := range cases {
		fmt.Fprintf(&models, "  %s: {base_url: %q, stream: %v, timeouts: {attempt: 20s, call: 1m}}\n", o.name, o.model.URL(), o.stream)
		fmt.Fprintf(&agents, "  %s:\n    instructions: Go.\n    model: %s\n"+
			"    tools: [list_items, get_item, add_note, pay, pay_many, empty, blob]\n", o.name, o.name)
	}
	yaml := fmt.Sprintf("serial: 1\nstore: {url: \"file://%s/store\"}\nworker: {task_queue: %s, stop_timeout: 1s}\n"+
		"policy: {rules: [{name: everything, then: allow}], duplicates: allow, uncertain: tell}\nmodels:\n%sagents:\n%s",
		dir, queue, models.String(), agents.String())
	cfg, err := worker.Parse("odd.yaml", dir, []byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- worker.Options{Client: &client.Options{HostPort: parts.server.Address(), Logger: silent{}}}.Run(ctx, cfg, tools.all(t)...)
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("worker: %v", err)
		}
	})
	return queue
}

// odd runs one case and holds what the file expects of it.
func (r *rig) odd(o odd, tools *oddTools) {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	session := r.prefix + o.name
	op := r.client.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
		ID: session, TaskQueue: r.queue, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, agent.WorkflowSession, agent.SessionInput{Agent: o.name})
	h, err := r.client.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: op, UpdateOptions: client.UpdateWorkflowOptions{
			UpdateName: agent.UpdateSend, UpdateID: "m", Args: []any{agent.Message{ID: "m", Text: "Go."}},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err == nil {
		err = h.Get(ctx, nil)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	res := r.ended(o.name, 1)
	final := string(res.Status)
	if res.Reason != nil && res.Reason.Type == agent.ErrRefusal {
		final = "refusal"
	}
	if len(o.Final) > 0 && !slices.Contains(o.Final, final) {
		r.t.Errorf("ended as %s (%+v), want one of %v", final, res.Reason, o.Final)
	}
	tools.mu.Lock()
	defer tools.mu.Unlock()
	for name, allowed := range o.Calls {
		if n := tools.ran[session][name]; !allowed.Allows(n) {
			r.t.Errorf("%s ran %d times, want %v", name, n, allowed)
		}
	}
	if n := len(o.model.Requests()); o.MaxRequests > 0 && n > o.MaxRequests {
		r.t.Errorf("%d requests, at most %d are allowed", n, o.MaxRequests)
	}
	r.exact(o, tools.paid[session])
	if o.ID == "http-429-retry-after" {
		asked := o.model.Requests()
		if len(asked) < 2 || asked[1].At.Sub(asked[0].At) < 2*time.Second {
			r.t.Errorf("asked again too early: %d requests", len(asked))
		}
	}
}

// exact holds what the tool got against what the model wrote.
func (r *rig) exact(o odd, paid []string) {
	want := map[string]string{
		"args-big-int":    `"ref":9007199254740993`,
		"args-zero-width": "\"to\":\"ac\u200bme\"",
	}[o.ID]
	for _, args := range paid {
		if !strings.Contains(args, want) {
			r.t.Errorf("pay got %s, want it to hold %s", args, want)
		}
	}
}
