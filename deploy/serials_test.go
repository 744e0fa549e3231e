package deploy

import (
	"errors"
	"testing"

	"github.com/holdfast-run/holdfast/worker"
)

func TestBuildsWhoseFilesHaveDifferentSerialsTakeNoWorkOfEachOther(t *testing.T) {
	t.Parallel()
	of := func(id string, serial int64) Build {
		return Build{ID: id, Workers: 1, Table: &worker.Table{Serial: serial}}
	}
	for name, test := range map[string]struct {
		old, next     Build
		promote, back bool // refused: the next one, and the old one again
		ramp          bool
		behind        string
	}{
		"the same":             {old: of("v1", 3), next: of("v2", 3)},
		"the next is ahead":    {old: of("v1", 2), next: of("v2", 3), back: true, ramp: true, behind: "v1"},
		"the next is behind":   {old: of("v1", 3), next: of("v2", 2), promote: true, ramp: true, behind: "v2"},
		"the next says not":    {old: of("v1", 3), next: Build{ID: "v2", Workers: 1}},
		"the old one says not": {old: Build{ID: "v1"}, next: of("v2", 3)},
		"of before serials":    {old: of("v1", 0), next: of("v2", 3)},
	} {
		d := &Deployment{Current: "v1", Builds: []Build{test.old, test.next}}
		for what, got := range map[string]struct {
			err  error
			want bool
		}{
			"promote":   {d.behind(test.next), test.promote},
			"back":      {d.behind(test.old), test.back},
			"ramp":      {d.apart(test.next), test.ramp},
			"take back": {second(d.mayRamp(test.next, 0, false)), false},
			"force":     {second(d.mayRamp(test.next, 5, true)), false},
		} {
			var e *SerialError
			if errors.As(got.err, &e) != got.want || got.want && e.Behind.ID != test.behind {
				t.Errorf("%s: %s: %v, want refused %v", name, what, got.err, got.want)
			}
		}
	}
}
