package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
)

type attentionOptions struct{ app *App }

func newAttention(a *App) *cobra.Command {
	o := &attentionOptions{app: a}
	return &cobra.Command{
		Use:   "attention",
		Short: "List what needs a person",
		Long: `The one list of what needs a person in the namespace, each with the command that answers it: approvals, the
first to expire first; effects whose outcome nobody knows or is contradicted; compensations that failed; budgets
that are used up; runs that are stuck, because a worker fails on them again and again: they lose nothing and go on with a
worker that can take them; runs that are held, because they go on with one build of a worker deployment that no
worker polls for; and runs of which an activity is failing: at its fifth attempt, if only a person can help (a model, a
newer holdfast.yaml, the right store or the right build is missing), and after five minutes or thirty attempts otherwise.
It exits with 8 when there is anything. Where no worker answers it shows what the server and the histories know.`,
		Example: `  holdfast attention
  holdfast attention -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
}

// Kinds of matters, the most urgent first. Those that a run publishes have the names of its search attribute.
const (
	matterApproval     = agent.AttentionApproval
	matterUncertain    = agent.AttentionUncertain
	matterConflict     = "conflict"
	matterCompensation = agent.AttentionCompensation
	matterBudget       = agent.AttentionBudget
	matterStuck        = "stuck"
	matterHeld         = "held"
	matterFailing      = "failing"
)

var matterOrder = []string{matterApproval, matterUncertain, matterConflict, matterCompensation, matterBudget, matterStuck, matterHeld, matterFailing}

// A matter is one thing that needs a person, as -o json prints it.
type matter struct {
	Kind     string    `json:"kind"`
	Session  string    `json:"session"`
	Turn     int       `json:"turn,omitempty"`
	Workflow string    `json:"workflow"`
	Approval string    `json:"approval,omitempty"` // id of the request
	Key      string    `json:"key,omitempty"`      // of the effect
	Tool     string    `json:"tool,omitempty"`
	What     string    `json:"what"` // for a person
	Why      string    `json:"why,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Expires  time.Time `json:"expires,omitzero"`
	Command  string    `json:"command"` // that answers it
	// Build is the one that a held run waits for; Advice says what else may help a stuck or failing one.
	Build  string `json:"build,omitempty"`
	Advice string `json:"advice,omitempty"`
	// Activity is the type of one that is failing, and Attempt the one that comes next or runs.
	Activity string `json:"activity,omitempty"`
	Attempt  int    `json:"attempt,omitempty"`
}

func (o *attentionOptions) run(ctx context.Context) error {
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	f := newFinder(c, nil) // what is open is in no closing record
	defer f.close()
	late := time.AfterFunc(patience, func() { o.app.note("looking at every open run") })
	defer late.Stop()
	found, err := f.attention(ctx)
	var unseen *unseenError
	if err != nil && !errors.As(err, &unseen) {
		return err
	}
	sortMatters(found)
	if o.app.json() {
		if err := o.app.printJSON(struct {
			Attention []matter `json:"attention"`
		}{append([]matter{}, found...)}); err != nil {
			return err
		}
	} else if len(found) > 0 || unseen == nil {
		o.app.printMatters(found, time.Now())
	}
	if silent := f.silence(); len(silent) > 0 {
		o.app.note("no worker answers on %s: this is what the server and the histories know", line(silent[0], 160))
	}
	switch {
	case unseen != nil:
		return unseen
	case len(found) > 0:
		return &exitError{code: ExitWaiting}
	}
	return nil
}

func sortMatters(found []matter) {
	slices.SortFunc(found, func(a, b matter) int {
		return cmp.Or(
			slices.Index(matterOrder, a.Kind)-slices.Index(matterOrder, b.Kind),
			soonest(a.Expires, b.Expires), a.Since.Compare(b.Since),
			cmp.Compare(a.Workflow, b.Workflow), cmp.Compare(a.Approval+a.Key, b.Approval+b.Key),
		)
	})
}

// soonest compares two times of which zero is never.
func soonest(a, b time.Time) int {
	switch {
	case a.IsZero() == b.IsZero():
		return a.Compare(b)
	case a.IsZero():
		return 1
	}
	return -1
}

func (a *App) printMatters(found []matter, now time.Time) {
	if len(found) == 0 {
		a.note("nothing needs a person")
		return
	}
	for _, m := range found {
		when := ""
		switch {
		case !m.Expires.IsZero():
			when = expiry(m.Expires, now)
		case !m.Since.IsZero():
			when = "since " + clock(m.Since)
		}
		place := address{session: m.Session, turn: m.Turn}.String()
		why := ""
		if m.Why != "" {
			why = ": " + line(m.Why, maxWhy)
		}
		// What a model wrote comes last: nothing follows that it could imitate.
		fmt.Fprintf(a.Out, "%s  %s  %s  %s%s\n", a.paint(a.Out, bold, fmt.Sprintf("%-12s", line(m.Kind, 20))),
			line(place, 120), line(when, 60), line(m.What, lineLimit), why)
		fmt.Fprintf(a.Out, "    %s\n", line(cmp.Or(m.Advice, m.Command), 400))
	}
}
