package starter

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// A forked session is what fork prints with -o json.
type forked struct {
	Session string        `json:"session"`
	Agent   string        `json:"agent"`
	From    agent.Scope   `json:"from"`
	Turn    int           `json:"turn"`
	Result  string        `json:"result"` // accepted, refused or unanswered
	Why     string        `json:"why,omitempty"`
	Origin  *agent.Origin `json:"origin,omitempty"`
}

// sameFork refuses a session id that is taken by something else than this very fork.
func (c *conn) sameFork(ctx context.Context, s submission) error {
	var in agent.SessionInput
	var stored error
	err := c.read(ctx, reading{workflow: s.session, size: 1, each: func(ev *historypb.HistoryEvent) error {
		stored = unread(decoder{c.payloads}.first(ev.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in))
		return errStop
	}})
	if err = errors.Join(err, stored); err != nil {
		return err
	}
	if f := in.Fork; f == nil || f.From != s.fork.From || f.Turn != s.fork.Turn {
		return withHint(fmt.Errorf("session id %q is taken: an id is used once", s.session), "choose another: --session ID")
	}
	return nil
}

// awaitFork follows a session until its first act, the fork, is done or refused. What it is waiting for meanwhile goes
// to note.
func (c *conn) awaitFork(ctx context.Context, s submission, note func(string), r *forked) error {
	f := &follower{conn: c, session: s.session, queue: s.queue, show: func(e event) { note(e.Text) }}
	watch := f.watchdog(ctx, s.session)
	defer watch.stop()
	run, err := c.firstRun(ctx, s.session)
	if err != nil {
		return err
	}
	r.Result = wordUnanswered
	log := &sessionLog{decoder: decoder{c.payloads}, session: s.session}
	return c.read(ctx, reading{workflow: s.session, run: run, follow: true, trouble: f.trouble, each: func(ev *historypb.HistoryEvent) error {
		watch.fed()
		for _, e := range log.add(ev) {
			if e.Type == evForked {
				r.Result = wordAccepted
			}
		}
		switch {
		case log.forked != nil:
			r.Origin = &log.forked.Origin
		case log.ended != "" && r.Result != wordAccepted:
			r.refused(log, ev)
		}
		if r.Result != wordUnanswered {
			return errStop
		}
		return nil
	}})
}

// refused takes the reason with which the session ended.
func (r *forked) refused(log *sessionLog, ev *historypb.HistoryEvent) {
	r.Result, r.Why = wordRefused, "the session was "+log.ended
	if a := ev.GetWorkflowExecutionFailedEventAttributes(); a != nil {
		r.Why = log.failure(a.GetFailure()).String()
	}
}

func (o *forkOptions) report(r forked) error {
	a, exit := o.app, exitOf(r.Result)
	if a.json() {
		if err := a.printJSON(r); err != nil || exit == ExitDone {
			return err
		}
		return &exitError{code: exit}
	}
	switch r.Result {
	case wordRefused:
		return withHint(&exitError{exit, fmt.Errorf("the fork was refused: %s", line(r.Why, 2000))}, "the session %s, which was to be it, is closed", r.Session)
	case wordUnanswered:
		return withHint(&exitError{exit, fmt.Errorf("no word on the fork within %s; the session %s was started and waits for a worker", o.wait, r.Session)},
			"it can be sent messages already: holdfast send %s MESSAGE; see what it waits for: holdfast attention", r.Session)
	}
	if _, err := fmt.Fprintln(a.Out, r.Session); err != nil {
		return err
	}
	a.note("it knows what was said up to turn %d of %s, %s; go on with: holdfast send %s MESSAGE --follow", r.Turn, r.From.Session, forkedBy(r.Origin), r.Session)
	return nil
}

func forkedBy(o *agent.Origin) string {
	if o == nil || o.By == "" {
		return "forked"
	}
	return "forked by " + line(o.By, 80)
}

// completeTurns offers the turns of the session that was named.
func (a *App) completeTurns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 || !agent.ValidSessionID(args[0]) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.offer(cmd.Context(), func(ctx context.Context, c *conn) []string {
		n, err := c.latestTurn(ctx, args[0])
		if err != nil {
			return nil
		}
		var out []string
		for ; n > 0 && len(out) < 50; n-- {
			out = append(out, fmt.Sprintf("turn-%d", n))
		}
		return out
	})
}
