package cell

import (
	"reflect"
	"slices"
	"testing"

	fp "github.com/holdfast-run/holdfast/internal/failpoint"
)

const draws = 2000

func TestARandomScheduleIsAlwaysTheSameAndCanHappen(t *testing.T) {
	t.Parallel()
	other := 0
	for i := range draws {
		c := Random(7, i)
		if again := Random(7, i); !reflect.DeepEqual(c, again) {
			t.Fatalf("schedule %d is %s and %s", i, c.Name(), again.Name())
		}
		if err := c.valid(); err != nil || c.Expect != expected(c) {
			t.Errorf("schedule %d, %s: %v, expects %s", i, c.Name(), err, c.Expect)
		}
		if c.Name() != Random(8, i).Name() {
			other++
		}
	}
	if other < draws/2 {
		t.Errorf("another seed gives %d other schedules of %d", other, draws)
	}
}

func TestRandomSchedulesComeToEveryPlaceWithEverythingThatTheyMayHave(t *testing.T) {
	t.Parallel()
	kinds, places, at := map[Kind]bool{}, map[string]bool{}, map[string]bool{}
	strikes := map[int]int{}
	for i := range draws {
		c := Random(1, i)
		at[string(c.Scenario)+" "+string(c.Destination)] = true
		n := 0
		for _, f := range c.Faults {
			kinds[f.Kind] = true
			if slices.Contains([]Kind{Kill, Freeze, Crash}, f.Kind) {
				places[f.At] = true
				n++
			}
		}
		strikes[n]++
	}
	for _, k := range []Kind{Kill, Freeze, Crash, Link, Storm, Lost, Slow, Renew, Cold, Word} {
		if !kinds[k] {
			t.Errorf("no schedule has %q", k)
		}
	}
	for _, p := range fp.Points() {
		if !places[p.Name] {
			t.Errorf("no schedule comes to %s", p.Name)
		}
	}
	if len(kinds) != 10 || len(at) != 9 || len(strikes) != 3 || min(strikes[1], strikes[2], strikes[3]) < draws/5 {
		t.Errorf("kinds %v, scenarios %v, strikes %v", kinds, at, strikes)
	}
}
