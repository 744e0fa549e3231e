package activities

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/effect"
	"github.com/holdfast-run/holdfast/store"
)

// Settle looks into a word on an effect whose outcome is not known. One with a key alone says only that there is
// something to find out: the record of the outcome is read, or the destination asked, so that it forges nothing. A
// person who has looked says committed or failed, by the same rights and signatures as an approval, and that
// becomes the record unless there is one. Of an effect whose outcome is final but contradicted, or that could not be
// undone, the same word says that somebody has looked, and changes nothing else. A settlement that does not count is a result that says why.
func (a *Activities) Settle(ctx context.Context, in agent.SettleInput) (agent.SettleResult, error) {
	p := begin(ctx, "settling")
	defer p.stop()
	snap := a.Current()
	if err := a.admit(snap, in.Scope, in.Store, in.Serial); err != nil {
		return agent.SettleResult{}, err
	}
	var res agent.SettleResult
	var err error
	switch {
	case in.Settlement.Key != in.Effect.Key:
		res.Why = "the settlement is of another effect"
	case in.Settlement.Outcome == "":
		res, err = a.settleByRecord(ctx, snap, in)
	default:
		res, err = a.settleByPerson(ctx, snap, in)
	}
	res.Key, res.Serial = in.Effect.Key, snap.newer(in.Serial)
	return res, err
}

// settleByRecord finds out what became of an effect. Only one that is in doubt is asked about: asking about one that
// is still to be sent would withdraw it.
func (a *Activities) settleByRecord(ctx context.Context, s *Snapshot, in agent.SettleInput) (agent.SettleResult, error) {
	recorded, err := a.outcome(ctx, s, a.Store.Space(in.Scope), store.Dispatch{Key: in.Effect.Key}, agent.ToolResult{})
	known := recorded != nil && recorded.State != agent.StateUncertain
	switch {
	case err != nil:
		return agent.SettleResult{}, err
	case known && in.Effect.State == "":
		return a.remembered(ctx, s, in, *recorded)
	case known:
		return agent.SettleResult{Result: *recorded}, nil
	case in.Effect.State != agent.StateUncertain:
		return agent.SettleResult{Why: fmt.Sprintf("the effect is %s and nothing more is recorded of it", in.Effect.State)}, nil
	}
	res, err := a.reconcile(ctx, s, in.Scope, in.Effect)
	if err == nil && res.State == agent.StateUncertain {
		return agent.SettleResult{Why: "its outcome is still not known: " + res.Note}, nil
	}
	return agent.SettleResult{Result: res}, err
}

// remembered says of an effect that the session keeps no more what somebody has to look at: that its end is
// contradicted. What is needed to show it stands in its dispatch record.
func (a *Activities) remembered(ctx context.Context, s *Snapshot, in agent.SettleInput, res agent.ToolResult) (agent.SettleResult, error) {
	if res.Conflict == "" {
		return agent.SettleResult{Why: "its outcome is known: " + string(res.State)}, nil
	}
	d, err := a.Store.Space(in.Scope).Dispatch(ctx, in.Effect.Key)
	if err != nil && !definite(err) {
		return agent.SettleResult{}, s.storeTrouble(ctx, "reading the dispatch of "+in.Effect.Key, err)
	}
	e := effectOf(in.Effect.Key, d)
	e.State, e.Attempt, e.At, e.Note, e.Evidence, e.Conflict = res.State, max(res.Attempt, 1), res.At, res.Note, res.Evidence, res.Conflict
	return agent.SettleResult{Result: res, Effect: &e}, nil
}

func (a *Activities) settleByPerson(ctx context.Context, s *Snapshot, in agent.SettleInput) (agent.SettleResult, error) {
	if why := unfit(in); why != "" {
		return agent.SettleResult{Why: why}, nil
	}
	at, why, err := taken(ctx, a, s, signalOf(ctx, in.Run, agent.SignalSettle), approval.ParseSettlement, in.Settlement)
	if err != nil || why != "" {
		return agent.SettleResult{Why: why}, err
	}
	by, err := s.Policy.JudgeSettlement(in.Scope, in.Settlement, at)
	if err != nil {
		return agent.SettleResult{Why: s.say("%s", err.Error())}, nil
	}
	if in.Effect.State != agent.StateUncertain { // final: the word is that somebody has looked
		return agent.SettleResult{Looked: true, By: by, Result: a.settled(s, in, by, at)}, nil
	}
	res, err := a.keepWord(ctx, s, in, a.settled(s, in, by, at))
	return agent.SettleResult{Result: res, By: by}, err
}

// unfit says what is wrong with a person's settlement in itself.
func unfit(in agent.SettleInput) string {
	x := in.Settlement
	switch {
	case x.Outcome != agent.StateCommitted && x.Outcome != agent.StateFailed:
		return fmt.Sprintf("the outcome is %s; a person can say committed or failed", quoted(string(x.Outcome)))
	case x.Evidence == "" || len(x.Evidence) > agent.MaxEvidence:
		return fmt.Sprintf("the evidence has %d bytes; want 1 to %d that say how the outcome is known", len(x.Evidence), agent.MaxEvidence)
	case !effect.Unresolved(in.Effect):
		return fmt.Sprintf("the effect is %s: there is nothing to settle", in.Effect.State)
	}
	return ""
}

// settled is a person's word as a result. It is the same each time, so that an attempt knows its own record.
func (a *Activities) settled(s *Snapshot, in agent.SettleInput, by string, at time.Time) agent.ToolResult {
	seen := s.Mask.String(in.Settlement.Evidence)
	text := "It took effect"
	if in.Settlement.Outcome == agent.StateFailed {
		text = "It did not take effect"
	}
	return agent.ToolResult{
		State: in.Settlement.Outcome, Attempt: max(in.Effect.Attempt, 1), At: at.Truncate(time.Millisecond),
		Text:     text + ", as a person who looked into it says: " + seen,
		Note:     cut("settled as "+string(in.Settlement.Outcome)+" by "+s.Mask.String(by), maxWords),
		Evidence: cut("settled by "+s.Mask.String(by)+": "+seen, agent.MaxEvidence),
	}
}

// keepWord makes a person's word the record of the effect. One that stands wins, and contradicts it or not; one that
// cannot be read cannot be mended either, and the word counts all the same.
func (a *Activities) keepWord(ctx context.Context, s *Snapshot, in agent.SettleInput, word agent.ToolResult) (agent.ToolResult, error) {
	first, standing, err := a.Store.Space(in.Scope).CreateResult(ctx, store.Result{Key: in.Effect.Key, Tool: &word})
	switch {
	case unreadable(err), err == nil && !first && standing.Tool == nil:
		word.Note = joined(word.Note, "the record of its outcome cannot be read")
		return word, nil
	case err != nil:
		return agent.ToolResult{}, s.storeTrouble(ctx, "recording the settlement of "+in.Effect.Key, err)
	case first:
		return word, nil
	}
	res := adopted(standing)
	if res.State != word.State {
		res.Conflict = fmt.Sprintf("%s, but its record says %s", word.Note, res.State)
	}
	return res, nil
}
