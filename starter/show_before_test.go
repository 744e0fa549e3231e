package starter

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/worker"
)

// TestATurnsFirstStepIsComparedWithTheTurnBefore follows a pinned session from one build to another, which declares its
// tool otherwise.
func TestATurnsFirstStepIsComparedWithTheTurnBefore(t *testing.T) {
	t.Parallel()
	s := newStage(t, startServer(t), "before")
	stop := s.worker(worker.Options{Build: "v1"})
	s.ok("run", "careful", "hello", "--session", "kept")
	stop()
	pay, err := tool.New(tool.Spec{Name: "pay", Class: agent.ClassOnce}, func(context.Context, tool.Call, struct {
		Order  string `json:"order"`
		Amount int    `json:"amount"`
	},
	) (string, error) {
		return "paid", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.tools = []tool.Tool{pay}
	s.worker(worker.Options{Build: "v2"})
	s.ok("send", "kept", "hello again", "--follow")
	var turn shownTurn
	s.json(&turn, "show", "kept")
	if want := (boundary{What: ofBuild, From: "v1", To: "v2"}); turn.Turn != 2 || !slices.Contains(turn.Boundary, want) {
		t.Errorf("turn %d was opened across %v, want %v", turn.Turn, turn.Boundary, want)
	}
	if want := (boundary{What: ofCode, From: "v1", To: "v2"}); !slices.Contains(turn.Steps[0].Boundary, want) {
		t.Errorf("the first step crossed %v, want %v", turn.Steps[0].Boundary, want)
	}
	out := s.ok("show", "kept")
	for _, want := range []string{
		"tool schemas: as the definition has them -> others (", "pinned tool pay is not offered: declared otherwise",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("show does not say %q:\n%s", want, out)
		}
	}
	// The first turn of a session has nothing to be compared with.
	if out := s.ok("show", "kept/turn-1"); strings.Contains(out, "boundary") || strings.Contains(out, "not offered") {
		t.Errorf("the first turn:\n%s", out)
	}
}

func TestWhatIsWithheldIsNamedWhereItIsCertain(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]struct {
		names       []string
		all, pinned bool
	}{
		"pinned tool a is not offered: declared otherwise":            {[]string{"a"}, true, true},
		"pinned tools a, b are not offered: declared otherwise":       {[]string{"a", "b"}, true, true},
		"not all of the pinned tools a, b are offered: one is declar": {[]string{"a", "b"}, false, true},
		"tool a is not offered: not there any more":                   {[]string{"a"}, true, false},
		"tools a, b are not offered: not there any more":              {[]string{"a", "b"}, true, false},
		"none of the definition's tools is offered: ":                 {nil, true, false},
		"a pinned tool is not offered: ":                              {nil, false, true},
	} {
		if got := withheldText(c.names, c.all, c.pinned); !strings.HasPrefix(got, want) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
