package starter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/store"
)

func newEffectsShow(a *App) *cobra.Command {
	return &cobra.Command{
		Use:   "show KEY",
		Short: "Show all that is known of one effect",
		Long: `Shows each state that an effect went through, with when and by whom, what policy and people decided, how its
outcome is known and, when holdfast.yaml names the workers' store, the records of its dispatch and its result.`,
		Example:           `  holdfast effects show 'support-x7k2mq~0a1b2c3d:turn-1/2.1/0123456789abcdef'`,
		ValidArgsFunction: a.completeUncertain,
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := parseKey(args[0])
			if err != nil {
				return err
			}
			return a.showEffect(cmd.Context(), args[0], k)
		},
	}
}

// A shownEffect is what effects show prints with -o json.
type shownEffect struct {
	foundEffect
	Approvals []agent.Approval `json:"approvals,omitempty"`
	Refused   []agent.Refusal  `json:"refused,omitempty"` // decisions and settlements on it that did not count
	Dispatch  *store.Dispatch  `json:"dispatch,omitempty"`
	Result    *store.Result    `json:"result,omitempty"`
	// Records says why there is no record here, or "" when the store was read.
	Records string `json:"records,omitempty"`
}

func (a *App) showEffect(ctx context.Context, key string, k agent.Key) error {
	c, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	f := newFinder(c, a.storeAtHand(ctx))
	defer f.close()
	s, err := f.effect(ctx, key, k)
	if err != nil {
		return err
	}
	if a.json() {
		return a.printJSON(s)
	}
	a.printEffect(&s)
	return nil
}

// effect puts together what is known of an effect. The records may know it when nothing else does any more.
func (f *finder) effect(ctx context.Context, key string, k agent.Key) (shownEffect, error) {
	s := shownEffect{foundEffect: foundEffect{Session: k.Scope.Session, Turn: k.Place.Turn}}
	f.records(ctx, &s, k.Scope, key)
	found, err := f.known(ctx, &s, key, k)
	if err != nil && !isNotFound(err) {
		return s, err
	}
	if !found && s.Dispatch == nil && s.Result == nil {
		return s, withHint(fmt.Errorf("no effect %q is known here", line(key, 240)), "see what there is: holdfast effects %s/turn-%d", k.Scope.Session, k.Place.Turn)
	}
	if !found {
		s.Source = "records"
		s.Key = key
		if d := s.Dispatch; d != nil {
			s.Tool, s.Class, s.Action, s.Intent, s.Verdict, s.Undoes = d.Tool, d.Class, d.Action, d.Intent, d.Verdict, d.Undoes
			s.State, s.At, s.Attempt = agent.StateDispatched, d.At, d.Attempt
		}
		if r := s.Result; r != nil && r.Tool != nil {
			s.State, s.At, s.Note, s.Evidence = r.Tool.State, r.Tool.At, r.Tool.Note, r.Tool.Evidence
		}
	}
	return s, nil
}

// known looks for the effect in its turn, in the turn's late compensations and in the session.
func (f *finder) known(ctx context.Context, s *shownEffect, key string, k agent.Key) (found bool, err error) {
	session, err := f.conn.describe(ctx, k.Scope.Session, "")
	if err != nil {
		return false, err
	}
	info := session.GetWorkflowExecutionInfo()
	if agent.NewScope(k.Scope.Session, firstRunOf(info)) != k.Scope {
		return false, nil // another life of the same session id
	}
	turn := address{session: k.Scope.Session, turn: k.Place.Turn}
	past, err := f.conn.pastOf(ctx, turn)
	if err != nil {
		return false, err
	}
	for _, at := range append([]address{turn}, past.started...) {
		l, err := f.ledger(ctx, k.Scope, at)
		if err != nil && !isNotFound(err) { // what is beyond the server's retention is gone
			return found, err
		}
		found = err == nil && s.take(l, key) || found
	}
	if found {
		since := foundEffects{Effects: []foundEffect{s.foundEffect}}
		since.settle(past.words)
		s.foundEffect = since.Effects[0]
	}
	v, err := f.unresolved(ctx, k.Scope.Session, desk(info))
	if err != nil {
		return found, nil // the turn's word is all there is
	}
	for _, e := range v.Effects {
		if e.Key == key {
			s.Effect, s.Source, found = e, sourceSession, true
		}
	}
	s.refusals(v.Refused, key)
	return found, nil
}

// take adds what a ledger knows of the effect.
func (s *shownEffect) take(l *ledger, key string) (found bool) {
	for _, e := range l.effects {
		if e.Key == key {
			s.Effect, s.Source, found = e, l.source, true
		}
	}
	for _, a := range l.approvals {
		if a.Key == key {
			s.Approvals = append(s.Approvals, a)
		}
	}
	s.refusals(l.refused, key)
	return found
}

func (s *shownEffect) refusals(refused []agent.Refusal, key string) {
	for _, r := range refused {
		if r.ID == key || strings.HasPrefix(r.ID, key+"#") {
			s.Refused = append(s.Refused, r)
		}
	}
}

// records reads what the store has about a key.
func (f *finder) records(ctx context.Context, s *shownEffect, scope agent.Scope, key string) {
	if f.store == nil {
		s.Records = "the workers' store is not at hand: name their configuration with --config"
		return
	}
	if id := f.conn.storeOf(ctx, address{session: scope.Session, turn: s.Turn}); id != "" && id != f.store.ID() {
		s.Records = fmt.Sprintf("the store at hand is %s, and the turn's is %s: name the workers' configuration with --config", f.store.ID(), line(id, 40))
		return
	}
	space := f.store.Space(scope)
	var why []string
	d, err := space.Dispatch(ctx, key)
	switch {
	case err == nil:
		s.Dispatch = &d
	case !errors.Is(err, store.ErrAbsent):
		why = append(why, "dispatch: "+err.Error())
	}
	r, err := space.Result(ctx, key)
	switch {
	case err == nil:
		s.Result = &r
	case !errors.Is(err, store.ErrAbsent):
		why = append(why, "result: "+err.Error())
	}
	s.Records = strings.Join(why, "; ")
}

func (a *App) printEffect(s *shownEffect) {
	fmt.Fprintf(a.Out, "%s: %s\n", a.paint(a.Out, bold, line(s.Key, 240)), a.paint(a.Out, bold, line(string(s.State), 32)))
	a.field("tool", s.Tool)
	a.field("what", s.Summary)
	if s.Dispatch != nil {
		a.field("arguments", s.Dispatch.Args)
	}
	a.field("effect", string(s.Class))
	a.field("resource", s.Resource)
	a.field("digest", string(s.Action))
	a.field("verdict", verdictText(s.Verdict))
	a.field("undoes", s.Undoes)
	if s.Attempt > 0 {
		a.field("attempt", fmt.Sprint(s.Attempt))
	}
	a.field("note", s.Note)
	a.field("evidence", s.Evidence)
	if s.Cancel != "" {
		a.field("cancel", cancelText(s.Cancel))
	}
	a.field("conflict", s.Conflict)
	a.field("looked at", s.Looked)
	a.field("told by", s.Source)
	if len(s.Trail) > 0 {
		fmt.Fprintf(a.Out, "\n%s\n", a.paint(a.Out, bold, "states"))
	}
	for _, t := range s.Trail {
		fmt.Fprintf(a.Out, "  %s  %s%s%s\n", clock(t.At), line(string(t.State), 32), by(t.By), because(t.Note))
	}
	for _, ap := range s.Approvals {
		a.printApproval("  ", &ap)
	}
	for _, r := range s.Refused {
		fmt.Fprintf(a.Out, "  refused %s%s: %s\n", clock(r.At), by(r.Approver), line(r.Why, 2*lineLimit))
	}
	a.printRecords(s)
	if s.State == agent.StateUncertain {
		a.note("settle it with: %s", settleCommand(s.Key))
	}
}

// verdictText is a verdict with the rule and the policy that it comes from.
func verdictText(v agent.Verdict) string {
	if v.Decision == "" {
		return ""
	}
	text := string(v.Decision)
	if v.Rule != "" {
		text += " by rule " + v.Rule
	}
	if v.Policy != "" {
		text += ", policy " + v.Policy
	}
	return text
}

// printApproval prints a request and what people said about it.
func (a *App) printApproval(indent string, ap *agent.Approval) {
	text := line(string(ap.Outcome), 32)
	if ap.Outcome == agent.OutcomePending && !ap.ExpiresAt.IsZero() {
		text += " until " + clock(ap.ExpiresAt)
	}
	fmt.Fprintf(a.Out, "%sapproval %s: %s%s\n", indent, line(ap.ID, 240), text, because(ap.Note))
	for _, d := range ap.Decisions {
		fmt.Fprintf(a.Out, "%s  %s  %s by %s%s\n", indent, clock(d.At), choiceText(d.Choice), decidedBy(d), because(d.Reason))
	}
	if ap.ProposedArgs != "" {
		fmt.Fprintf(a.Out, "%s  the model proposed: %s\n", indent, approval.Visible(ap.ProposedArgs))
		fmt.Fprintf(a.Out, "%s  approved instead:   %s\n", indent, approval.Visible(ap.Args))
	}
	if ap.Terms.First != "" {
		fmt.Fprintf(a.Out, "%s  the same was done before: %s\n", indent, line(ap.Terms.First, 240))
	}
}

func (a *App) printRecords(s *shownEffect) {
	fmt.Fprintf(a.Out, "\n%s\n", a.paint(a.Out, bold, "records"))
	switch d := s.Dispatch; {
	case d == nil && s.Records == "" && s.Class != agent.ClassRead:
		fmt.Fprintf(a.Out, "  %-15s none: nothing was sent\n", "dispatch")
	case d != nil && d.Revoked:
		a.field("dispatch", "revoked: nothing was sent and nothing will be")
	case d != nil:
		a.field("dispatch", fmt.Sprintf("attempt %d at %s, to be sent by %s", d.Attempt, stampTime(d.At), stampTime(d.SendBy)))
		a.field("  verdict", verdictText(d.Verdict))
		if d.Grant != nil {
			a.field("  approval", d.Grant.ID)
		}
	}
	if r := s.Result; r != nil && r.Tool != nil {
		a.field("result", strings.TrimSpace(outcomeText(r.Tool, r.Tool.Attempt)+" "+stampTime(r.Tool.At)))
		a.field("  text", resultText(r.Tool))
		a.field("  version", r.Tool.Version)
		a.field("  build", r.Tool.Build)
		if r.Tool.State != s.State && s.State == agent.StateUncertain {
			a.field("", "the record knows the outcome; the turn had ended before it was known")
		}
	}
	a.field("not read", s.Records)
}

func stampTime(t time.Time) string {
	if t.IsZero() {
		return "?"
	}
	return t.Local().Format("2006-01-02 15:04:05.000")
}
