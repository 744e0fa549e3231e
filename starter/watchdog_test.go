package starter

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
)

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
