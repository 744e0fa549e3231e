package replay

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestADifferenceIsTheFirstPlacesWhereValuesPart(t *testing.T) {
	t.Parallel()
	at := func(what, past, now string) Difference {
		return Difference{Event: 7, What: what, Recorded: past, Now: now}
	}
	long := strings.Repeat("x", 1000)
	for _, c := range []struct {
		name, past, now string
		want            []Difference
	}{
		{"a member", `{"a":{"b":1,"c":2}}`, `{"a":{"b":1,"c":3}}`, []Difference{at("in.a.c", "2", "3")}},
		{"a member more", `{"a":1}`, `{"a":1,"b":null,"c":2}`, []Difference{at("in.c", "nothing", "2")}},
		{"several", `{"a":1,"b":2}`, `{"a":3,"b":4}`, []Difference{at("in.a", "1", "3"), at("in.b", "2", "4")}},
		{"an element", `[1,{"a":2}]`, `[1,{"a":3}]`, []Difference{at("in[1].a", "2", "3")}},
		{"a longer list", `[1]`, `[1,2]`, []Difference{at("in", "[1]", "[1,2]")}},
		{"another type", `{"a":1}`, `7`, []Difference{at("in", `{"a":1}`, "7")}},
		{"numbers beyond a float64", `9007199254740993`, `9007199254740992`, []Difference{at("in", "9007199254740993", "9007199254740992")}},
		{"layout only", `{"a": 1}`, `{"a":1}`, []Difference{at("in", `{"a": 1}`, `{"a":1}`)}},
		{"what begins like JSON", "10m0s", "1h0m0s", []Difference{at("in", "10m0s", "1h0m0s")}},
		{"nothing and something", "", "1", []Difference{at("in", "", "1")}},
		{
			"the end of long text", long + "a", long + "b",
			[]Difference{at("in", "…"+strings.Repeat("x", maxClipped/4)+"a", "…"+strings.Repeat("x", maxClipped/4)+"b")},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, differ(7, "in", c.past, c.now)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAMismatchIsShortHoweverMuchDiffers(t *testing.T) {
	t.Parallel()
	m := &Mismatch{Workflow: "s:turn-1", Run: "r", Type: "Turn"}
	for range 1000 {
		m.Differences = append(m.Differences, Difference{Event: 1, What: "timer", Recorded: strings.Repeat("é", 1<<10), Now: "x"})
	}
	text := m.Error()
	if len(text) > 8<<10 || !strings.Contains(text, "and 980 more") {
		t.Errorf("%d bytes: %.300s", len(text), text)
	}
}
