package naive

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/report"
	"github.com/holdfast-run/holdfast/tests/chaos/world"
)

// lab is shared by all tests; nil in short runs, which have no server.
var lab *world.Lab

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		// They mostly wait, for time-outs and for workers that are gone, and not for a processor.
		if err := flag.Set("test.parallel", "6"); err != nil {
			panic(err)
		}
	}
	os.Exit(func() int {
		if testing.Short() {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "holdfast-naive-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if err := open(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if err := lab.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

// open builds the worker and opens the lab.
func open(dir string) (err error) {
	scene.Program = filepath.Join(dir, "worker")
	out, err := exec.Command("go", "build", "-tags", "failpoint", "-o", scene.Program, "./worker").CombinedOutput()
	if err != nil {
		return fmt.Errorf("the worker does not build: %w\n%s", err, out)
	}
	lab, err = world.Open(context.Background(), world.Options{Dir: dir})
	return err
}

// scene is two turns with two payments in the first.
var scene = Scene{
	Says: []string{"Refund what was broken.", "Thank you."}, Model: script, Payments: 2, Answers: 5,
}

func script(q modeltest.Request) modeltest.Step {
	if q.User() != "Refund what was broken." {
		return modeltest.Say("You are welcome.")
	}
	calls := []modeltest.Call{
		{ID: "call_0", Name: "lookup_order", Args: `{"id":"42"}`},
		{ID: "call_1", Name: "pay", Args: `{"order":"42","amount":"19.90"}`},
		{ID: "call_2", Name: "pay", Args: `{"order":"43","amount":"29.90"}`},
	}
	if n := len(q.Results()); n < len(calls) {
		return modeltest.Want(calls[n])
	}
	return modeltest.Say("Both are refunded.")
}

func needWorkers(t *testing.T) context.Context {
	t.Helper()
	if lab == nil {
		t.Skip("needs a Temporal server and worker processes")
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func payUnder(faults ...cell.Fault) cell.Cell {
	return cell.Cell{Scenario: cell.Pay, Destination: cell.HTTPKeyed, Faults: faults}
}

// becomes runs the loop under faults and compares what becomes of it.
func becomes(t *testing.T, want report.Naive, faults ...cell.Fault) {
	t.Helper()
	got, err := Run(needWorkers(t), lab, t.Name(), payUnder(faults...), scene)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestUndisturbedItPaysOnceEach(t *testing.T) {
	becomes(t, report.Naive{Applied: 2, Status: "done"})
}

// That it does is what it is here for.
func TestItPaysTwice(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]cell.Fault{
		"killed after the commit": {{Kind: cell.Kill, At: failpoint.ToolAfterCommit, Nth: 1}},
		"frozen after the commit": {{Kind: cell.Freeze, At: failpoint.ToolAfterCommit, Nth: 1}},
		"the approved payment":    {{Kind: cell.Kill, At: failpoint.ToolAfterSend, Nth: 2}},
		"the answer lost":         {{Kind: cell.Lost, Arg: "drop", Nth: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			becomes(t, report.Naive{Applied: 3, Duplicates: 1, Status: "done"}, faults...)
		})
	}
}

// Temporal does a lot for it.
func TestItPaysOnceEachWhere(t *testing.T) {
	t.Parallel()
	for name, faults := range map[string][]cell.Fault{
		"killed twice before it sends": {
			{Kind: cell.Kill, At: failpoint.ToolAfterDispatch, Nth: 1}, {Kind: cell.Kill, At: failpoint.ToolBeforeDispatch, Nth: 1},
		},
		"the server crashes":             {{Kind: cell.Crash, At: failpoint.TaskAfterCompletion, Nth: 4}},
		"the model has too much to do":   {{Kind: cell.Storm, Arg: "model 429 seconds", Nth: 2}},
		"the service has too much to do": {{Kind: cell.Storm, Arg: "destination 503 date", Nth: 2}},
		"a connection is cut":            {{Kind: cell.Link, Arg: "destination cut", At: failpoint.ToolBeforeDispatch, Nth: 1}},
		"words come again":               {{Kind: cell.Word, Arg: "duplicate"}, {Kind: cell.Cold}},
	} {
		t.Run(name, func(t *testing.T) {
			becomes(t, report.Naive{Applied: 2, Status: "done"}, faults...)
		})
	}
}

func TestAnAnswerThatWasNotHeardIsPaidForAgain(t *testing.T) {
	becomes(t, report.Naive{Applied: 2, Status: "done", Extra: 1}, cell.Fault{Kind: cell.Kill, At: failpoint.ModelAfterAnswer, Nth: 2})
}

func TestAFaultThatNeverStruckIsAnError(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]cell.Fault{
		"a place that is not passed so often": {Kind: cell.Kill, At: failpoint.ToolAfterCommit, Nth: 9},
		"a fault that is none":                {Kind: cell.Lost, Arg: "", Nth: 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Run(needWorkers(t), lab, t.Name(), payUnder(f), scene)
			if err == nil || !strings.Contains(err.Error(), "never struck") {
				t.Errorf("Run = %v, want an error that says that nothing was tried", err)
			}
		})
	}
}

// begun opens a run in which the user has said the first thing.
func begun(t *testing.T) (ctx context.Context, d *drive, id string) {
	t.Helper()
	ctx = needWorkers(t)
	d = &drive{scene: scene}
	t.Cleanup(func() {
		if err := d.close(); err != nil {
			t.Error(err)
		}
	})
	if err := d.open(ctx, lab, t.Name(), nil); err != nil {
		t.Fatal(err)
	}
	id = d.world.Session + "-1"
	if err := d.begin(ctx, id, []openai.Message{{Role: openai.RoleUser, Text: scene.Says[0]}}); err != nil {
		t.Fatal(err)
	}
	return ctx, d, id
}

func (d *drive) mustStart(ctx context.Context, t *testing.T) *world.Worker {
	t.Helper()
	w, err := d.start(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestAnApprovalWhileNoWorkerRunsIsKept(t *testing.T) {
	ctx, d, id := begun(t)
	first, asked := d.mustStart(ctx, t), ""
	for asked == "" {
		if err := pause(ctx, glance); err != nil {
			t.Fatalf("nobody was asked: %v\n%s", err, d.world.Said())
		}
		_, asked = d.look(ctx, id)
	}
	first.Kill()
	if err := d.word(ctx, id, asked); err != nil {
		t.Fatal(err)
	}
	d.mustStart(ctx, t)
	var conversation []openai.Message
	if err := d.world.Server.Client().GetWorkflow(ctx, id, "").Get(ctx, &conversation); err != nil {
		t.Fatal(err)
	}
	if got := conversation[len(conversation)-1].Text; got != "Both are refunded." {
		t.Errorf("the answer is %q", got)
	}
	if made, err := d.world.Made(); err != nil || len(made) != 2 {
		t.Errorf("made %+v, %v; want two payments", made, err)
	}
}

func TestATurnWithoutWorkersIsStuck(t *testing.T) {
	ctx, d, _ := begun(t)
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	if got := d.talk(ctx); got != stuck {
		t.Errorf("it is %q, want %q", got, stuck)
	}
}

// The passings are counted as Holdfast's are, so that the nth is the same moment.
func TestItPassesThePlacesAsHoldfastDoes(t *testing.T) {
	ctx := needWorkers(t)
	d := &drive{scene: scene}
	t.Cleanup(func() { _ = d.close() })
	if err := d.open(ctx, lab, t.Name(), nil); err != nil {
		t.Fatal(err)
	}
	if status, err := d.live(ctx); status != done || err != nil {
		t.Fatalf("%s, %v", status, err)
	}
	passed, err := d.world.Trace()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, p := range passed {
		got[p.Name]++
	}
	want := map[string]int{
		failpoint.WorkerReady:        1,
		failpoint.ModelBeforeRequest: 5, failpoint.ModelAfterRequest: 5, failpoint.ModelAfterAnswer: 5,
		failpoint.ToolBeforeAdmission: 3, // the order that is looked up, and two payments
		failpoint.ToolBeforeDispatch:  2, failpoint.ToolLastCheck: 2, failpoint.ToolAfterSend: 2, failpoint.ToolAfterCommit: 2,
		failpoint.ApprovalBeforeJudgement: 1, failpoint.ToolApproved: 1,
		failpoint.ActivityBeforeCompletion: 8, failpoint.ActivityAfterCompletion: 8,
		failpoint.TaskBeforeCompletion: 11, failpoint.TaskAfterCompletion: 11,
		failpoint.EndingBefore: 2, failpoint.EndingAfter: 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for place, counterpart := range places {
		if want[counterpart] == 0 {
			t.Errorf("%s is said to be %s, which the loop does not pass", place, counterpart)
		}
	}
}
