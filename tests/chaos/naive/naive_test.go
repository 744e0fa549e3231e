package naive

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/report"
	"github.com/holdfast-run/holdfast/tests/chaos/world"
)

// lab is shared by all tests; nil in short runs, which have no server.
var lab *world.Lab

func TestMain(m *testing.M) {
	flag.Parse()
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

// becomes runs the loop under faults and compares what becomes of it.
func becomes(t *testing.T, want report.Naive, faults ...cell.Fault) {
	t.Helper()
	needWorkers(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Second)
	defer cancel()
	got, err := Run(ctx, lab, t.Name(), cell.Cell{Scenario: cell.Pay, Destination: cell.HTTPKeyed, Faults: faults}, scene)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func needWorkers(t *testing.T) {
	t.Helper()
	if lab == nil {
		t.Skip("needs a Temporal server and worker processes")
	}
	t.Parallel()
}

func TestUndisturbedItPaysWhatIsToBePaid(t *testing.T) {
	becomes(t, report.Naive{Applied: 2, Status: "done"})
}

func TestADeathBehindTheCommitPaysTwice(t *testing.T) {
	becomes(t, report.Naive{Applied: 3, Duplicates: 1, Status: "done"}, cell.Fault{Kind: cell.Kill, At: failpoint.ToolAfterCommit, Nth: 1})
}
