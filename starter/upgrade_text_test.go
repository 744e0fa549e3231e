package starter

import (
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/worker"
)

func TestARequestForAnUpgradeIsToldOfByTheAgent(t *testing.T) {
	t.Parallel()
	args := `{"agent":"careful","changes":["instructions","tool refund: another version"],"from":"a","to":"b"}`
	if got := actionText(agent.ToolUpgrade, args); got != "the new definition of agent careful: instructions, tool refund: another version" {
		t.Error(got)
	}
	if got := wantedText(agent.ToolUpgrade, args); got != "a word on the new definition of agent careful" {
		t.Error(got)
	}
	// What is none is told as it is.
	if got := actionText("refund", args); got != "refund "+args {
		t.Error(got)
	}
	if got := actionText(agent.ToolUpgrade, "no JSON"); got != agent.ToolUpgrade+" no JSON" {
		t.Error(got)
	}
	request := agent.Approval{ApprovalRequest: agent.ApprovalRequest{ID: "s~1:turn-1/0.1/d#1", Tool: agent.ToolUpgrade, Args: args}}
	v := agent.TurnView{Waiting: "an approval of @upgrade: run holdfast approve s~1:turn-1/0.1/d#1", Approvals: []agent.Approval{request}}
	want := "a word on the new definition of agent careful: run holdfast approve 's~1:turn-1/0.1/d#1'"
	if got := waitingText(&v); got != want {
		t.Error(got)
	}
	v.Waiting = "more budget"
	if got := waitingText(&v); got != v.Waiting {
		t.Error(got)
	}
}

func TestACommandThatIsNamedBesideItIsNotSaidTwice(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"an approval of pay: run holdfast approve s~1": "an approval of pay",
		"2 approvals: run holdfast approvals":          "2 approvals",
		"a word on an effect: run holdfast effects s":  "a word on an effect: run holdfast effects s",
		"more steps": "more steps",
	} {
		if got := withoutCommand(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// A waiting turn that ends a following names the command that answers it once.
func TestTheCommandThatAnswersIsPrintedOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, startServer(t), "once")
	s.worker(worker.Options{})
	_, errs, code := s.holdfast("run", "asker", "pay", "--session", "once")
	if n := strings.Count(errs, "holdfast approve "); code != ExitWaiting || n != 1 {
		t.Errorf("exit code %d, named %d times:\n%s", code, n, errs)
	}
}
