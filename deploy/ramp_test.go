package deploy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/worker"
)

func TestAShareIsStableAndAHigherOneIncludesALower(t *testing.T) {
	t.Parallel()
	const sessions = 10_000
	counts := map[float64]int{}
	for i := range sessions {
		at := share(fmt.Sprintf("support-%d", i))
		if at < 0 || at >= 100 || at != share(fmt.Sprintf("support-%d", i)) {
			t.Fatalf("session %d is at %v", i, at)
		}
		for _, percent := range []float64{0, 1, 10, 50, 100} {
			if at < percent {
				counts[percent]++
			}
		}
	}
	for percent, n := range counts {
		if off := float64(n)/sessions*100 - percent; off > 1.5 || off < -1.5 {
			t.Errorf("%v percent are %d of %d", percent, n, sessions)
		}
	}
	if counts[0] != 0 || counts[100] != sessions {
		t.Errorf("none are %d, all are %d", counts[0], counts[100])
	}
	// Builds of other releases have to choose the same.
	if got := fmt.Sprintf("%.6f", share("support-1")); got != shareOfSupport1 {
		t.Errorf("support-1 is at %s", got)
	}
}

const shareOfSupport1 = "13.188789"

func TestWhatMayRamp(t *testing.T) {
	t.Parallel()
	const polls = 1
	for name, test := range map[string]struct {
		build   Build
		ramping string
		percent float32
		force   bool
		done    bool
		err     string
	}{
		"a new build":                  {Build{ID: "v2", Workers: polls}, "", 10, false, false, ""},
		"more":                         {Build{ID: "v2", Workers: polls, Percent: 10}, "v2", 20, false, false, ""},
		"as it is":                     {Build{ID: "v2", Workers: polls, Percent: 10}, "v2", 10, false, true, ""},
		"away":                         {Build{ID: "v2", Percent: 10}, "v2", 0, false, false, ""},
		"a ramp of nothing, away":      {Build{ID: "v2"}, "v2", 0, false, false, ""},
		"away again":                   {Build{ID: "v2"}, "", 0, false, true, ""},
		"another ramps":                {Build{ID: "v2"}, "v3", 0, false, false, `"v3" does`},
		"instead of another":           {Build{ID: "v2", Workers: polls}, "v3", 10, false, false, ""},
		"the current one":              {Build{ID: "v1", Workers: polls}, "", 10, false, false, "is current"},
		"the current one, away":        {Build{ID: "v1"}, "", 0, false, true, ""},
		"without workers":              {Build{ID: "v2"}, "", 10, false, false, "no worker"},
		"without workers, with force":  {Build{ID: "v2"}, "", 10, true, false, ""},
		"without workers, as it is":    {Build{ID: "v2", Percent: 10}, "v2", 10, false, true, ""},
		"without workers, it grows":    {Build{ID: "v2", Percent: 10}, "v2", 11, false, false, "no worker"},
		"without workers, taking away": {Build{ID: "v2", Percent: 10}, "v2", 0, false, false, ""},
	} {
		d := &Deployment{Current: "v1", Ramping: test.ramping}
		done, err := d.mayRamp(test.build, test.percent, test.force)
		if done != test.done || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: done %v, error %v", name, done, err)
		}
	}
}

func TestWhoMayCross(t *testing.T) {
	t.Parallel()
	upgrades := Upgrades(func(name string) (agent.Upgrade, bool) {
		u, ok := map[string]agent.Upgrade{"f": agent.UpgradeFollow, "a": agent.UpgradeAsk, "p": agent.UpgradePin}[name]
		return u, ok
	})
	for name, want := range map[string]string{"f": "", "a": "", "p": LeftPinned, "gone": LeftUnknown, "": LeftUnknown} {
		got := ""
		if l := upgrades.mayCross(run(t, agent.WorkflowSession, "s", map[string]any{agent.AttributeAgent: name})); l != nil {
			got = l.Kind
			if l.Why == "" || l.Workflow != "s" || l.Run != "run-s" || l.Agent != name {
				t.Errorf("%q: %+v", name, l)
			}
		}
		if got != want {
			t.Errorf("agent %q is left for %q, want %q", name, got, want)
		}
	}
}

func TestWhoMayMoveRuns(t *testing.T) {
	t.Parallel()
	m := &Mover{Binary: "dev-1"}
	named := &worker.Table{Binary: "dev-1"}
	for name, test := range map[string]struct {
		now Build
		ok  bool
	}{
		"the current build":           {Build{ID: "dev-1", Workers: 1}, true},
		"under another name":          {Build{ID: "v7", Workers: 1, Table: named}, true},
		"another build":               {Build{ID: "v7", Workers: 1, Table: &worker.Table{Binary: "dev-2"}}, false},
		"one that says nothing":       {Build{ID: "v7", Workers: 1}, false},
		"the current build is silent": {Build{ID: "dev-1"}, false},
		"none is current":             {Build{}, false},
	} {
		var not *NotCurrentError
		if err := m.mayMove(test.now); (err == nil) != test.ok || err != nil && !errors.As(err, &not) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
