package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// A variant is a program built from a small variant of the agent's code: see tests/e2e/variant.
type variant struct{ path, build string }

// rests is how long a turn of the second variant rests before it ends: a path that the first one does not have.
const rests = 42 * time.Millisecond

// secondWorkflows are the edits that make the second variant's workflows, under a change number of their own.
var secondWorkflows = map[string][2]string{
	"versioning/table.go": {
		"Removable: removable,\n\t\t},\n\t}\n",
		"Removable: removable,\n\t\t},\n\t\t{Workflow: agent.WorkflowTurn, Number: 4, What: \"rests\", Understood: \"9\", Preferred: \"9\", Removable: removable},\n\t}\n",
	},
	"workflows/turn_unwind.go": {
		"func (t *turn) unwind(e end) (renew bool) {\n",
		"func (t *turn) unwind(e end) (renew bool) {\n\tif t.change >= 4 {\n\t\t_ = workflow.Sleep(t.root, 42_000_000)\n\t}\n",
	},
}

// variants builds both programs, once.
var variants = sync.OnceValues(func() (both [2]variant, err error) {
	dir, err := os.MkdirTemp(filepath.Dir(parts.binary), "variants-")
	if err != nil {
		return both, err
	}
	overlay, err := overlay(dir)
	if err != nil {
		return both, err
	}
	for i, flags := range [][]string{nil, {"-overlay", overlay}} {
		v := &both[i]
		v.path = filepath.Join(dir, fmt.Sprintf("agent-%d", i+1))
		args := append([]string{"build", "-ldflags", fmt.Sprintf("-X main.version=%d", i+1), "-o", v.path}, flags...)
		if out, err := exec.Command("go", append(args, "github.com/holdfast-run/holdfast/tests/e2e/variant")...).CombinedOutput(); err != nil {
			return both, fmt.Errorf("variant %d does not build: %w\n%s", i+1, err, out)
		}
		out, err := exec.Command(v.path, "version", "-o", "json").Output()
		if err != nil {
			return both, err
		}
		if err := json.Unmarshal(out, &v); err != nil {
			return both, err
		}
	}
	return both, nil
})

func (v *variant) UnmarshalJSON(b []byte) error {
	var said struct{ Build string }
	err := json.Unmarshal(b, &said)
	v.build = said.Build
	return err
}

// overlay writes the edited files and the list of them that the go command takes.
func overlay(dir string) (string, error) {
	replace := map[string]string{}
	for name, edit := range secondWorkflows {
		path, err := filepath.Abs(filepath.Join("../..", name))
		if err != nil {
			return "", err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return "", err
		}
		if n := strings.Count(string(b), edit[0]); n != 1 {
			return "", fmt.Errorf("%s has %q %d times: mend secondWorkflows", name, edit[0], n)
		}
		edited := filepath.Join(dir, strings.ReplaceAll(name, "/", "-"))
		if err := os.WriteFile(edited, []byte(strings.Replace(string(b), edit[0], edit[1], 1)), 0o600); err != nil {
			return "", err
		}
		replace[path] = edited
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list := filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, b, 0o600)
}

// A rollout is a rig with both variants as builds of one deployment.
type rollout struct {
	*rig
	builds     [2]variant
	deployment string
	env        []string
}

const (
	firstPrompt  = "You refund orders."
	secondPrompt = "You refund orders and say why."
)

// newRollout starts the first build and makes it current.
func newRollout(t *testing.T, upgrade string) (*rollout, *process) {
	t.Helper()
	both, err := variants()
	if err != nil {
		t.Fatal(err)
	}
	r := &rollout{rig: newRig(t, setting{
		model: modeltest.Config{Func: asBidden}, tools: "[pay_back]",
		policy: fmt.Sprintf(`{upgrade: %s, rules: [{name: refunds, when: 'tool == "pay_back"', then: ask}], duplicates: deny}`, upgrade),
	}), builds: both}
	r.deployment = strings.TrimSuffix(r.prefix, "-")
	r.env = []string{"PAYMENTS_URL=" + r.payURL}
	first := r.serve(0)
	r.promote(0)
	return r, first
}

// asBidden is a model that refunds what it is told to, with a reason if the tool wants one, and again if the tool has changed.
func asBidden(r modeltest.Request) modeltest.Step {
	results := r.Results()
	if !strings.HasPrefix(r.User(), "Refund") || len(results) > 0 && !strings.Contains(results[len(results)-1], "changed") {
		return modeltest.Say("done")
	}
	if len(r.Tools) == 0 {
		return modeltest.Say("I have no tool for that.")
	}
	args := strings.TrimSpace(refund42)
	if strings.Contains(string(r.Raw), "why the money goes back") {
		args = strings.TrimSuffix(args, "}") + `,"reason":"broken"}`
	}
	return modeltest.Want(modeltest.Call{ID: fmt.Sprintf("call_%d", len(r.Messages)), Name: "pay_back", Args: args})
}

// serve starts a worker of a build.
func (r *rollout) serve(i int) *process {
	r.t.Helper()
	return r.process(exec.Command(r.builds[i].path, "worker", "--config", filepath.Join(r.dir, "holdfast.yaml"), "--deployment", r.deployment), r.env...)
}

// changes has the second build's agent: another prompt; its tool is the program's own.
func (r *rollout) changes() {
	r.t.Helper()
	r.edit("serial: 1", "serial: 2", firstPrompt, secondPrompt)
}

// deploy runs "holdfast deploy" of a build's program and wants it to succeed.
func (r *rollout) deploy(i int, args ...string) string {
	r.t.Helper()
	out, errs, exit := r.tries(i, append([]string{"deploy"}, args...)...)
	if exit != 0 {
		r.t.Fatalf("deploy %v ended with %d:\n%s%s", args, exit, out, errs)
	}
	return out
}

// promote makes a build current, once the server has heard of it.
func (r *rollout) promote(i int) {
	r.t.Helper()
	r.eventually(r.builds[i].build+" is promoted", func() bool {
		_, _, exit := r.tries(i, "deploy", "promote", r.builds[i].build)
		return exit == 0
	})
}

func (r *rollout) tries(i int, args ...string) (stdout, stderr string, exit int) {
	r.t.Helper()
	if args[0] == "deploy" {
		args = append(args, "--deployment", r.deployment)
	}
	return r.command(r.builds[i].path, append(args, "--config", filepath.Join(r.dir, "holdfast.yaml"))...)
}

// begins has the first build ask for an approval, stops it, and rolls the second one out.
func (r *rollout) begins(first *process) (agent.Scope, agent.Approval) {
	r.t.Helper()
	r.start("s", "Refund order 42.")
	scope, a := r.ask("s", 1, agent.OutcomePending)
	first.kill()
	r.changes()
	r.serve(1)
	r.promote(1)
	return scope, a
}

func (r *rollout) approve(turn int, scope agent.Scope, a agent.Approval) {
	r.t.Helper()
	r.signal("s", turn, agent.SignalApproval, person{name: "alice"}.unsigned(a))
}

func (p person) unsigned(a agent.Approval) agent.ApprovalDecision {
	return agent.ApprovalDecision{ID: a.ID, Digest: a.Action, Choice: agent.ChoiceApprove, Approver: p.name}
}

// says sends the session's second message and returns the prompt that the model got for it.
func (r *rollout) greets() {
	r.t.Helper()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_, _ = r.send(ctx, "s", agent.Message{ID: "hello", Text: "Hello."})
	}()
}

// heard is the prompt of the model's latest request.
func (r *rollout) heard() string {
	r.t.Helper()
	all := r.model.Requests()
	return all[len(all)-1].Messages[0].Content
}

// rested says whether a turn took the path that only the second build has.
func (r *rollout) rested(turn int) bool {
	r.t.Helper()
	it := r.client.GetWorkflowHistory(r.t.Context(), agent.TurnID(r.prefix+"s", turn), "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if e.GetTimerStartedEventAttributes().GetStartToFireTimeout().AsDuration() == rests {
			return true
		}
	}
	return false
}

// TestAPinnedTurnEndsOnItsOwnBuild: the second build has another tool, another prompt and another path. The turn that waits
// is the first build's to end, and the session goes on with the definition that it started with.
func TestAPinnedTurnEndsOnItsOwnBuild(t *testing.T) {
	t.Parallel()
	r, first := newRollout(t, "pin")
	scope, a := r.begins(first)
	r.approve(1, scope, a)
	// Nobody can carry it out now, and the operator is told which build it takes.
	out, _, exit := r.tries(1, "deploy", "drain", r.builds[0].build, "--move", "--timeout", "3s")
	if exit == 0 || !strings.Contains(out, agent.TurnID(r.prefix+"s", 1)) {
		t.Errorf("drain ended with %d: %s", exit, out)
	}
	if n := len(r.pay.Books().Entries); n != 0 {
		t.Fatalf("%d refunds by a build that does not have the tool", n)
	}
	r.serve(0)
	if res := r.ended("s", 1); res.Status != agent.StatusDone || len(r.pay.Books().Entries) != 1 || r.rested(1) {
		t.Errorf("%+v, books %+v", res, r.pay.Books())
	}
	r.greets()
	if res := r.ended("s", 2); res.Status != agent.StatusDone || r.heard() != firstPrompt || !r.rested(2) {
		t.Errorf("%+v with prompt %q", res, r.heard())
	}
	r.deploy(1, "drain", r.builds[0].build, "--timeout", "1m")
}

// TestATurnThatFollowsIsMovedAndAsksAgain: an approval is of one exact action, so that of the first build's tool does not
// count for the second one's. The turn keeps its prompt; the next one has the new one.
func TestATurnThatFollowsIsMovedAndAsksAgain(t *testing.T) {
	t.Parallel()
	r, first := newRollout(t, "follow")
	scope, a := r.begins(first)
	r.approve(1, scope, a)
	r.deploy(1, "drain", r.builds[0].build, "--move", "--timeout", "1m")
	r.asksAnew(a)
	if r.heard() != firstPrompt || r.rested(1) {
		t.Errorf("a running turn was given another definition: %q", r.heard())
	}
	r.greets()
	if res := r.ended("s", 2); res.Status != agent.StatusDone || r.heard() != secondPrompt || !r.rested(2) {
		t.Errorf("%+v with prompt %q", res, r.heard())
	}
}

// asksAnew approves the second request of the first turn and waits for its end.
func (r *rollout) asksAnew(before agent.Approval) {
	r.t.Helper()
	scope, a := r.anew(before)
	r.approve(1, scope, a)
	if res := r.ended("s", 1); res.Status != agent.StatusDone {
		r.t.Errorf("ended as %s: %+v", res.Status, res.Reason)
	}
	r.books("19.90")
}

// anew waits for a request of another action than the one before.
func (r *rollout) anew(before agent.Approval) (agent.Scope, agent.Approval) {
	r.t.Helper()
	var found agent.Approval
	v := r.approvals("s", 1, "the changed action is asked for", func(v agent.ApprovalsView) bool {
		for _, a := range v.Approvals {
			if a.Outcome == agent.OutcomePending && a.Action != before.Action {
				found = a
				return true
			}
		}
		return false
	})
	if !strings.Contains(found.Args, `"reason":"broken"`) {
		r.t.Errorf("asks for %s", found.Args)
	}
	return v.Scope, found
}

// TestASessionThatAsksTakesTheNewDefinitionOnlyWhenTold: the running turn goes on as with follow, and the next one waits for
// a person before it takes the new prompt.
func TestASessionThatAsksTakesTheNewDefinitionOnlyWhenTold(t *testing.T) {
	t.Parallel()
	r, first := newRollout(t, "ask")
	scope, a := r.begins(first)
	r.approve(1, scope, a)
	r.deploy(1, "drain", r.builds[0].build, "--move", "--timeout", "1m")
	r.asksAnew(a)
	r.greets()
	var offer agent.Approval
	v := r.approvals("s", 2, "it asks for the upgrade", func(v agent.ApprovalsView) bool {
		if len(v.Approvals) == 1 {
			offer = v.Approvals[0]
		}
		return len(v.Approvals) == 1
	})
	if offer.Tool != agent.ToolUpgrade || !strings.Contains(offer.Args, secondPrompt) || r.heard() != firstPrompt {
		t.Errorf("asks for %s %s, having asked the model with %q", offer.Tool, offer.Args, r.heard())
	}
	r.approve(2, v.Scope, offer)
	if res := r.ended("s", 2); res.Status != agent.StatusDone || r.heard() != secondPrompt || !r.rested(2) {
		t.Errorf("%+v with prompt %q", res, r.heard())
	}
	out, errs, exit := r.tries(1, "show", r.prefix+"s")
	if exit != 0 || !strings.Contains(out, r.builds[1].build) {
		t.Errorf("show ended with %d:\n%s%s", exit, out, errs)
	}
}
