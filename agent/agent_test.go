package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

func TestKeysAreTheSameForEveryAttempt(t *testing.T) {
	t.Parallel()
	s := agent.NewScope("order-42", "0b2f1c1e-run")
	p := agent.Place{Turn: 3, Step: 2, Call: 1}
	action := agent.DigestOf([]byte("action"))
	got := agent.ActionKey(s, p, action)
	want := "order-42~" + s.Life + ":turn-3/2.1/" + string(action[:16])
	if got != want {
		t.Errorf("key %q, want %q", got, want)
	}
	if k := agent.ModelKey(s, p, action); !strings.HasSuffix(k, ":turn-3/2.model/"+string(action[:16])) {
		t.Errorf("model key %q", k)
	}
}

func TestTheLongestKeyIsWithinTheBound(t *testing.T) {
	t.Parallel()
	s := agent.NewScope(strings.Repeat("x", 64), "run")
	p := agent.Place{Turn: 1 << 40, Step: 1 << 40, Call: 1 << 40}
	for _, k := range []string{agent.ActionKey(s, p, agent.DigestOf(nil)), agent.ModelKey(s, p, agent.DigestOf(nil))} {
		if len(k) > agent.MaxKey {
			t.Errorf("key of %d bytes: %q", len(k), k)
		}
	}
}

func TestAnotherLifeOfASessionHasOtherKeys(t *testing.T) {
	t.Parallel()
	a, b := agent.NewScope("s", "first"), agent.NewScope("s", "second")
	if a == b || !a.Valid() || !b.Valid() {
		t.Errorf("scopes %v and %v", a, b)
	}
}

func TestSessionIDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"a": true, "A-b_9": true, strings.Repeat("x", 64): true,
		"": false, "-a": false, "a/b": false, "a:b": false, "a~b": false, "a b": false, "é": false, strings.Repeat("x", 65): false,
	} {
		if got := agent.ValidSessionID(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}

func TestDurationsArePlainText(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(agent.Duration(90 * time.Second))
	if err != nil || string(b) != `"1m30s"` {
		t.Errorf("%s, %v", b, err)
	}
	var d agent.Duration
	if err := json.Unmarshal(b, &d); err != nil || d.Std() != 90*time.Second {
		t.Errorf("%v, %v", d, err)
	}
	for _, bad := range []string{`90`, `"90"`, `"soon"`, `null`, `{}`} {
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

func FuzzKey(f *testing.F) {
	s, p := agent.NewScope("s", "run"), agent.Place{Turn: 2, Step: 3, Call: 4}
	key := agent.ActionKey(s, p, agent.DigestOf(nil))
	for want, k := range map[agent.Key]string{{Scope: s, Place: p}: key, {Scope: s, Place: p, Undo: 2}: agent.UndoKey(key, 2)} {
		if got, ok := agent.ParseKey(k); !ok || got != want {
			f.Errorf("%q = %+v, %v", k, got, ok)
		}
	}
	for _, s := range []string{key, agent.UndoKey(key, 2), key + "/undo-0", key + "/again-1", key + "\n", "~:turn-1/1.1/", "s~0011aabb:turn-1/1.1/0123456789abcdeg", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, key string) {
		k, ok := agent.ParseKey(key)
		if !ok {
			return
		}
		_, digits, _ := strings.Cut(strings.TrimPrefix(key, k.Scope.String()), "/")
		_, digits, _ = strings.Cut(digits, "/")
		again := agent.ActionKey(k.Scope, k.Place, agent.Digest(digits))
		if k.Undo > 0 {
			again = agent.UndoKey(again, k.Undo)
		}
		if again != key || len(key) > agent.MaxKey {
			t.Errorf("%q is %+v, whose key is %q", key, k, again)
		}
	})
}

func FuzzTurnID(f *testing.F) {
	for _, s := range []string{"s:turn-1", "s:turn-01", "s:turn-0", "s:turn--1", ":turn-1", "a:turn-1:turn-2", "s:turn-9223372036854775808"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		session, turn, ok := agent.ParseTurnID(id)
		if ok && agent.TurnID(session, turn) != id {
			t.Errorf("%q became %q turn %d", id, session, turn)
		}
	})
}
