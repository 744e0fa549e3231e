package starter

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
)

func TestAnAddressIsTypedOrCopiedFromTheWebUI(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]address{
		"s1": {session: "s1"}, "s1/turn-3": {"s1", 3, 0}, "s1:turn-3": {"s1", 3, 0}, "s1:turn-3-undo-2": {"s1", 3, 2}, "s1/turn-3-undo-2": {"s1", 3, 2},
	} {
		if got, err := parseAddress(in); err != nil || got != want {
			t.Errorf("%q = %+v, %v, want %+v", in, got, err, want)
		}
	}
	for _, in := range []string{"", "/", "s1/", "s1/turn-", "s1/turn-0", "s1/turn-03", "s1/turn-3/x", "a/b", "../s", "s1/turn-3-undo-0", "\x1b[2J", strings.Repeat("a", 65)} {
		if got, err := parseAddress(in); err == nil {
			t.Errorf("%q = %+v", in, got)
		}
	}
	for _, in := range []string{"s1", "s1/turn-3-undo-2"} {
		if got, err := parseTurn(in); err == nil {
			t.Errorf("turn %q = %+v", in, got)
		}
	}
}

func FuzzAddress(f *testing.F) {
	for _, s := range []string{"s", "s/turn-1", "s:turn-1-undo-1", "", "s/turn-99999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := parseAddress(s)
		if err != nil {
			return
		}
		if again, err := parseAddress(a.String()); err != nil || again != a || !agent.ValidSessionID(a.session) {
			t.Errorf("%q is %+v, whose form %q is %+v, %v", s, a, a, again, err)
		}
	})
}

func FuzzEffectKey(f *testing.F) {
	key := agent.ActionKey(agent.NewScope("s", "run"), agent.Place{Turn: 2, Step: 3, Call: 4}, agent.DigestOf(nil))
	for _, s := range []string{key, agent.UndoKey(key, 2), key + "/undo-0", key + "\n", "~:turn-1/1.1/", "s~0011aabb:turn-1/1.1/0123456789abcdeg", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := parseKey(s)
		var exit *exitError
		switch {
		case err != nil && (!errors.As(err, &exit) || exit.code != ExitUsage):
			t.Errorf("%q: %v is no usage error", s, err)
		case err == nil && (!k.Scope.Valid() || k.Place.Turn < 1 || len(s) > agent.MaxKey):
			t.Errorf("%q = %+v", s, k)
		}
	})
}
