package starter

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// A failure that comes again and again is said ever less often, and another one at once.
func TestWhatFailsAgainAndAgainIsSaidEverLessOften(t *testing.T) {
	t.Parallel()
	var said []int
	last := ""
	for n := 1; n <= 1200; n++ {
		if now := (holdup{"still trying: open", n, "no model"}).news(); now != last {
			said, last = append(said, n), now
		}
	}
	if diff := cmp.Diff([]int{1, 3, 10, 30, 100, 300, 1000}, said); diff != "" {
		t.Error(diff)
	}
	if other := (holdup{"still trying: open", 1200, "no store"}); other.news() == last || other.String() != "still trying: open failed 1200 times, at last with: no store" {
		t.Errorf("%q after %q", other.news(), last)
	}
	if plain := (holdup{text: "no worker polls"}); plain.news() != "no worker polls" || (holdup{}).String() != "" {
		t.Errorf("%q", plain.news())
	}
}

// A healthy worker's poll may be a minute old, so only a task that lies there is a sign that nobody polls.
func TestATaskIsOverdueOnlyWhenItHasLainThere(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		scheduled *timestamppb.Timestamp
		want      bool
	}{
		"there is none":                   {nil, false},
		"it was scheduled a moment ago":   {timestamppb.New(now.Add(-time.Second)), false},
		"its next attempt is yet to come": {timestamppb.New(now.Add(time.Minute)), false},
		"nobody took it":                  {timestamppb.New(now.Add(-2 * patience)), true},
	} {
		if got := overdue(c.scheduled); got != c.want {
			t.Errorf("%s: overdue is %v", name, got)
		}
	}
}
