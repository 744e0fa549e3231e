package starter

import (
	"strings"
	"testing"
)

func FuzzWhereAForkBegins(f *testing.F) {
	for _, s := range [][2]string{
		{"support", "turn-3"},
		{"support/turn-3", ""},
		{"support~0a1b2c3d", "3"},
		{"support~0a1b2c3d/turn-3", ""},
		{"s:turn-1-undo-2", "1"},
		{"~", "turn-"},
		{"s~", "-1"},
		{"s~0A1B2C3D", "999999999999999999999"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, arg, at string) {
		o := &forkOptions{at: at}
		o.as = "alice"
		if o.parse(arg) != nil {
			return
		}
		if o.turn < 1 || o.from.Session == "" || o.from.Life != "" && !o.from.Valid() {
			t.Errorf("%q at %q is turn %d of %+v", arg, at, o.turn, o.from)
		}
		if strings.Contains(arg, "~") && o.from.Life == "" && !strings.HasSuffix(arg, "~") {
			t.Errorf("the life in %q was dropped", arg)
		}
	})
}
