package starter

import (
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"

	"github.com/holdfast-run/holdfast/versioning"
)

func TestAStuckRunSaysWhatIsMissingAndWhatToDo(t *testing.T) {
	t.Parallel()
	refused := (&versioning.CheckpointError{Schema: 9, Why: "this build knows schemas 1 to 3; a worker of a newer build has to take this run"}).Error()
	tooOld := `[TMPRL1100] Workflow code is too old to support version 7 for "holdfast-Turn" changeID. The maximum supported version is 3`
	for name, c := range map[string]struct {
		id, text, build     string
		first               bool
		why, advice, answer string
	}{
		"a state of a newer schema":              {"s:turn-1", refused, "", false, "is of schema 9", "by itself; or start again", "holdfast recover s/turn-1"},
		"a session's":                            {"s", refused, "", false, "is of schema 9", "by itself; or start again", "holdfast recover s"},
		"a state that no run before handed on":   {"s:turn-1", refused, "", true, "is of schema 9", "goes on by itself", "holdfast show s/turn-1"},
		"a change that this build does not know": {"s:turn-1", tooOld, "v2", false, "carries number 7 of Turn", "a newer build has to take it", `holdfast replay --query 'WorkflowId="s:turn-1"'`},
		"something else":                         {"s:turn-1", "it broke", "", false, "it broke", "see what it holds", "holdfast show s/turn-1"},
		"something else in a session":            {"s", "it broke", "", false, "it broke", "see what it holds", "temporal workflow show -w 's'"},
	} {
		x := explained(&commonpb.WorkflowExecution{WorkflowId: c.id}, c.text, c.build, c.first)
		if !strings.Contains(x.why, c.why) || !strings.Contains(x.advice, c.advice) || x.command != c.answer {
			t.Errorf("%s: %+v", name, x)
		}
		if c.build != "" && !strings.Contains(x.advice, "build "+c.build) {
			t.Errorf("%s: the build is not named: %s", name, x.advice)
		}
	}
}
