package starter

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/deploy"
)

func TestWhatHoldsABuildIsNamedWithItsAnswer(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	turn := deploy.Held{Workflow: "s:turn-1", Type: agent.WorkflowTurn, Session: "s", Turn: 1, Status: string(agent.StatusWaiting)}
	with := func(change func(*deploy.Held)) deploy.Held {
		h := turn
		change(&h)
		return h
	}
	for _, test := range []struct {
		held          deploy.Held
		what, command string
	}{
		{
			with(func(h *deploy.Held) { h.Approvals, h.Expires = 2, now.Add(90*time.Minute) }),
			"waits for 2 approvals, the first expires in 1h30m", "holdfast approvals --session s",
		},
		{with(func(h *deploy.Held) { h.Approvals = 1 }), "waits for 1 approval", "holdfast approvals --session s"},
		{with(func(h *deploy.Held) { h.Attention = agent.AttentionBudget }), "waits for more budget", extendCommand("s", "")},
		{
			with(func(h *deploy.Held) { h.Attention, h.Uncertain = agent.AttentionUncertain, 1 }),
			"waits for a word on an effect whose outcome nobody knows", "holdfast effects s",
		},
		{with(func(h *deploy.Held) { h.Attention = agent.AttentionCompensation }), "waits for a word on a compensation", "holdfast effects s"},
		{turn, "waits for a person", "holdfast show s"},
		{with(func(h *deploy.Held) { h.Status = string(agent.StatusRunning) }), "works", ""},
		{deploy.Held{Workflow: "s", Type: agent.WorkflowSession, Session: "s"}, "a session that was put on the build", "holdfast deploy ramp v1 --percent 0 --resumed"},
		{deploy.Held{Workflow: "a\x1b[31m", Type: "Ot\nher"}, "a workflow of type Ot her", "temporal workflow describe -w 'a⟨U+001B⟩[31m'"},
	} {
		what, command := waits(test.held, "v1", now)
		if what != test.what || command != test.command {
			t.Errorf("%+v: %q, %q, want %q, %q", test.held, what, command, test.what, test.command)
		}
	}
}

// TestACommandNamesAWholeBuildAndNothingElse: whatever stands in its id, the command can be pasted into a shell.
func TestACommandNamesAWholeBuildAndNothingElse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("v", 128) // the longest that a worker takes
	for build, want := range map[string]string{"v1": "v1", long: long, "$(id); a'b": `'$(id); a'\''b'`} {
		var errs strings.Builder
		o := &deployStatusOptions{deployOptions: &deployOptions{app: &App{Err: &errs}, deployment: "agents"}}
		o.next(&deploy.Status{
			Deployment: deploy.Deployment{Current: "v9", Builds: []deploy.Build{{ID: build, Standing: deploy.Draining, Workers: 1}}},
			Rows:       []deploy.BuildStatus{{Open: deploy.Open{Held: 1}}},
		})
		if command := "holdfast deploy drain " + want + " --deployment agents\n"; !strings.HasSuffix(errs.String(), command) {
			t.Errorf("%q: %q does not end with %q", build, errs.String(), command)
		}
	}
}

func TestATimeIsWrittenAsItWasTyped(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		24 * time.Hour: "24h", 90 * time.Minute: "1h30m", time.Minute: "1m", 10 * time.Minute: "10m", 30 * time.Second: "30s",
		time.Hour + time.Second: "1h0m1s",
	} {
		if got := brisk(d); got != want {
			t.Errorf("%v: %q, want %q", d, got, want)
		}
	}
}

func TestWhetherABuildPollsIsSaidAsFarAsItIsKnown(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for want, b := range map[string]deploy.Build{
		"2":             {Workers: 2, Polled: now},
		"none":          {},
		"none for 2m5s": {Polled: now.Add(-125 * time.Second)},
	} {
		if got := polling(b, now); got != want {
			t.Errorf("%+v: %q, want %q", b, got, want)
		}
	}
}
