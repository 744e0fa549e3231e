package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
)

// cancelled has two refunds made, one by approval, and taken back because the turn is cancelled, each step in a run of
// its own. It returns what the worker traced, a line each, and the widths.
func cancelled(t *testing.T) (trace, widths []string) {
	t.Helper()
	alice := newPerson(t, "alice")
	_, url := serve(t, payments.Config{})
	r := newRig(t, setting{
		model: modeltest.Config{Func: orders}, tools: "[pay]", agent: "    limits: {continue_after: 1}",
		policy: `{rules: [{name: large, when: 'has(args.amount) && args.amount.startsWith("9.")', then: ask}, {name: rest, then: allow}], ` +
			`on_failure: compensate, ` + approvers(alice) + `}`,
		toolsYML: fmt.Sprintf(`  pay:
    description: Refunds an order.
    effect: idempotent
    timeout: 2s
    compensate: {tool: take_back, args: {refund: result.refund}}
    parameters: {type: object, properties: {order: {type: string}, amount: {type: string}}, required: [order, amount]}
    http: {url: "%s/refunds"}
  take_back:
    description: Takes a refund back.
    effect: idempotent
    timeout: 2s
    parameters: {type: object, properties: {refund: {type: string}}, required: [refund]}
    http: {url: "%s/refunds/{refund}/void"}
`, url, url),
	})
	traced, measured := filepath.Join(r.dir, "trace"), filepath.Join(r.dir, "widths")
	r.process(exec.Command(parts.binary, "worker", "--config", filepath.Join(r.dir, "holdfast.yaml")),
		"HOLDFAST_FAILPOINT_TRACE="+traced, "HOLDFAST_FAILPOINT_WIDTH="+measured)
	r.start("s", `pay {"order":"42","amount":"1.00"}
pay {"order":"43","amount":"9.00"}
pay {"order":"43","amount":"9.50"}`)
	scope, waiting := r.pending("s", 1, 1)
	r.signal("s", 1, agent.SignalApproval, alice.says(t, scope, waiting[0], agent.ChoiceApprove))
	r.approvals("s", 1, "the third refund waits", func(v agent.ApprovalsView) bool {
		return slices.ContainsFunc(v.Approvals, func(a agent.Approval) bool {
			return a.ID != waiting[0].ID && a.Outcome == agent.OutcomePending
		})
	})
	r.holdfast("cancel", r.prefix+"s")
	if res := r.ended("s", 1); res.Status != agent.StatusCancelled {
		t.Fatalf("%+v", res)
	}
	return linesOf(t, traced), linesOf(t, measured)
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// TestARunPassesEveryPlaceThatThereIs in the order of the table, as often as it has such a moment, and the window before
// each send has a width.
func TestARunPassesEveryPlaceThatThereIs(t *testing.T) {
	t.Parallel()
	trace, widths := cancelled(t)
	var order []string // of the first passings
	count := map[string]int{}
	for _, line := range trace {
		name, _, _ := strings.Cut(line, " ")
		if count[name]++; count[name] == 1 {
			order = append(order, name)
		}
	}
	var places []string
	for _, p := range failpoint.Points() {
		places = append(places, p.Name)
		if count[p.Name] == 0 {
			t.Errorf("%s was never passed", p.Name)
		}
	}
	for _, family := range []string{"model.", "approval.", "tool.", "undo.", "activity.", "task.", "handover.", "ending.", "continue."} {
		if diff := cmp.Diff(first(places, family), first(order, family)); diff != "" {
			t.Errorf("order (-want +got):\n%s", diff)
		}
	}
	for name, want := range map[string]int{
		failpoint.WorkerReady: 1, failpoint.ApprovalBeforeJudgement: 1, failpoint.ApprovalAfterJudgement: 1, failpoint.ToolApproved: 1,
		failpoint.ToolBeforeAdmission: 2, failpoint.ToolBeforeDispatch: 2, failpoint.ToolAfterDispatch: 2,
		failpoint.ToolLastCheck: 4, failpoint.ToolAfterSend: 4, // those of compensations too
		failpoint.ToolAfterCommit: 2, failpoint.ToolAfterAdoption: 2, failpoint.UndoAfterPlan: 1,
		failpoint.UndoBeforeAdmission: 2, failpoint.UndoBeforeDispatch: 2, failpoint.UndoAfterDispatch: 2,
		failpoint.UndoAfterCommit: 2, failpoint.UndoAfterAdoption: 2, failpoint.HandoverAfter: 1,
	} {
		if count[name] != want {
			t.Errorf("%s was passed %d times, want %d", name, count[name], want)
		}
	}
	for _, line := range widths {
		if n, err := strconv.Atoi(line); err != nil || n <= 0 || time.Duration(n) > time.Second || len(widths) != 4 {
			t.Errorf("widths %q, want one for each send", widths)
		}
	}
}

// first returns the places of a family but that of an approval, which the first action may not have.
func first(places []string, family string) (out []string) {
	for _, p := range places {
		if strings.HasPrefix(p, family) && p != failpoint.ToolApproved {
			out = append(out, p)
		}
	}
	return out
}
