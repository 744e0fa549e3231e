package versioning_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

type state struct {
	Step int    `json:"step"`
	Note string `json:"note,omitempty"`
}

func TestCheckpointsComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	c, err := versioning.Seal(1, state{Step: 7, Note: "x"})
	if err != nil {
		t.Fatal(err)
	}
	var got state
	if err := versioning.Open(c, nil, &got); err != nil {
		t.Fatal(err)
	}
	if got != (state{Step: 7, Note: "x"}) {
		t.Errorf("got %+v", got)
	}
}

func TestBadCheckpointsAreRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	good, err := versioning.Seal(1, state{Step: 7})
	if err != nil {
		t.Fatal(err)
	}
	unknown, err := versioning.Seal(1, map[string]any{"step": 1, "later": true})
	if err != nil {
		t.Fatal(err)
	}
	altered, newer, other := *good, *good, *good
	altered.State = strings.Replace(altered.State, "7", "8", 1)
	newer.Schema = 2
	other.Schema = 0
	for name, c := range map[string]struct {
		c    *agent.Checkpoint
		want string
	}{
		"altered":       {&altered, "altered"},
		"newer":         {&newer, "newer build"},
		"no schema":     {&other, "knows schemas 1 to 1"},
		"unknown field": {unknown, "later"},
		"nothing":       {&agent.Checkpoint{Schema: 1}, "altered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got state
			err := versioning.Open(c.c, nil, &got)
			var refused *versioning.CheckpointError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want a CheckpointError that says %q", err, c.want)
			}
		})
	}
}

func TestOldSchemasAreUpgradedOneByOne(t *testing.T) {
	t.Parallel()
	old, err := versioning.Seal(1, map[string]any{"count": 3})
	if err != nil {
		t.Fatal(err)
	}
	rename := func(b json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(strings.Replace(string(b), "count", "step", 1)), nil
	}
	annotate := func(b json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(strings.Replace(string(b), "}", `,"note":"upgraded"}`, 1)), nil
	}
	var got state
	if err := versioning.Open(old, []versioning.Upgrade{rename, annotate}, &got); err != nil {
		t.Fatal(err)
	}
	if got != (state{Step: 3, Note: "upgraded"}) {
		t.Errorf("got %+v", got)
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add(1, `{"step":1}`, true)
	f.Add(2, `[`, false)
	f.Fuzz(func(t *testing.T, schema int, text string, seal bool) {
		c := &agent.Checkpoint{Schema: schema, State: text}
		if seal {
			var v json.RawMessage = []byte(text)
			if s, err := versioning.Seal(schema, v); err == nil {
				c = s
			}
		}
		var got state
		_ = versioning.Open(c, nil, &got)
	})
}

func TestARefusedCheckpointIsKnownByItsText(t *testing.T) {
	t.Parallel()
	c, err := versioning.Seal(99, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	var v struct{}
	if err := versioning.Open(c, nil, &v); err == nil || !versioning.RefusesCheckpoint(err.Error()) {
		t.Errorf("%v", err)
	}
	if versioning.RefusesCheckpoint("[TMPRL1100] nondeterministic workflow: missing replay command") {
		t.Error("something else is taken for it")
	}
}
