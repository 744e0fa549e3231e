package starter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// one lists the effects of a turn and of its late compensations, with the session's word on what the turn left.
func (f *finder) one(ctx context.Context, at address) (foundEffects, error) {
	var out foundEffects
	info, err := f.conn.describeSession(ctx, at.session)
	if err != nil {
		return out, err
	}
	scope := agent.NewScope(at.session, firstRunOf(info))
	if err := f.add(ctx, &out, scope, at); err != nil {
		if isNotFound(err) {
			err = noTurn(at.session, at.turn)
		}
		return out, err
	}
	past, err := f.conn.pastOf(ctx, at)
	if err != nil {
		return out, err
	}
	for _, undo := range past.started {
		if err := f.add(ctx, &out, scope, undo); err != nil && !isNotFound(err) {
			return out, err
		}
	}
	out.settle(past.words)
	f.overlay(ctx, &out, at.session, desk(info), at.turn)
	return out, nil
}

// add appends the effects of one turn or late compensation.
func (f *finder) add(ctx context.Context, out *foundEffects, scope agent.Scope, at address) error {
	l, err := f.ledger(ctx, scope, at)
	if err != nil {
		return err
	}
	for _, e := range l.effects {
		found := foundEffect{Session: at.session, Turn: at.turn, Source: l.source, Effect: e}
		if i := out.index(e.Key); i >= 0 {
			out.Effects[i] = found // a compensation knows the effect that it undoes better than its turn did
			continue
		}
		out.Effects = append(out.Effects, found)
	}
	for _, c := range l.folded {
		out.fold(c)
	}
	return nil
}

func (out *foundEffects) index(key string) int {
	for i := range out.Effects {
		if out.Effects[i].Key == key {
			return i
		}
	}
	return -1
}

func (out *foundEffects) fold(c agent.Count) {
	for i := range out.Folded {
		if out.Folded[i].State == c.State {
			out.Folded[i].N += c.N
			return
		}
	}
	out.Folded = append(out.Folded, c)
}

// overlay puts the session's word above that of turns that have ended; turn 0 means all of them.
func (f *finder) overlay(ctx context.Context, out *foundEffects, session, desk string, turn int) {
	v, err := f.unresolved(ctx, session, desk)
	if err != nil {
		return
	}
	for _, e := range v.Effects {
		if turn != 0 && e.Place.Turn != turn {
			continue
		}
		found := foundEffect{Session: session, Turn: e.Place.Turn, Source: sourceSession, Effect: e}
		if i := out.index(e.Key); i >= 0 {
			out.Effects[i] = found
			continue
		}
		out.Effects = append(out.Effects, found)
	}
}

// session lists the effects of a session's latest turns; 0 is all of them.
func (f *finder) session(ctx context.Context, session string, turns int) (foundEffects, error) {
	var out foundEffects
	info, err := f.conn.describeSession(ctx, session)
	if err != nil {
		return out, err
	}
	scope := agent.NewScope(session, firstRunOf(info))
	past, err := f.conn.past(ctx, session, func(found []address) bool { return turns > 0 && len(turnsIn(found)) >= turns })
	if err != nil {
		return out, err
	}
	started := past.started
	if all := turnsIn(started); turns > 0 && len(all) > 0 {
		first := all[max(len(all)-turns, 0)].turn
		out.Earlier = first - 1
		started = slices.DeleteFunc(started, func(at address) bool { return at.undo == 0 && at.turn < first })
	}
	for _, at := range started {
		// What is beyond the server's retention, and in no store at hand, is gone.
		if err := f.add(ctx, &out, scope, at); err != nil && !isNotFound(err) {
			return out, err
		}
	}
	out.settle(past.words)
	f.overlay(ctx, &out, session, desk(info), 0)
	return out, nil
}

// A past is what a session's history says of its turns.
type past struct {
	started []address // turns and late compensations, in order
	words   []lateWord
}

// past reads a session's history from its latest run backwards, until enough says so.
func (c *conn) past(ctx context.Context, session string, enough func([]address) bool) (past, error) {
	var p past
	err := c.backwards(ctx, session, func(s *sessionLog) bool {
		p.started = append(s.started(), p.started...)
		p.words = append(slices.Clone(s.words), p.words...)
		return enough(p.started)
	})
	return p, err
}

// pastOf is the past of one turn: the late compensations of it, whose numbers count through the session, and what
// settled its effects. A late compensation has none of its own.
func (c *conn) pastOf(ctx context.Context, turn address) (past, error) {
	p, err := c.past(ctx, turn.session, func(found []address) bool {
		all := turnsIn(found)
		return len(all) > 0 && all[0].turn <= turn.turn
	})
	p.started = slices.DeleteFunc(p.started, func(at address) bool { return turn.undo != 0 || at.undo == 0 || at.turn != turn.turn })
	return p, err
}

func turnsIn(found []address) []address {
	var out []address
	for _, at := range found {
		if at.undo == 0 {
			out = append(out, at)
		}
	}
	return out
}

// namespace lists the effects in doubt of all open turns and sessions, found by their search attributes.
func (f *finder) namespace(ctx context.Context, turns int) (foundEffects, error) {
	var (
		out   foundEffects
		infos []*workflowpb.WorkflowExecutionInfo
	)
	query := fmt.Sprintf("ExecutionStatus = 'Running' AND %s > 0", agent.AttributeUncertain)
	err := f.conn.list(ctx, query, func(info *workflowpb.WorkflowExecutionInfo) bool {
		infos = append(infos, info)
		return true
	})
	if err != nil {
		return out, err
	}
	for _, info := range infos {
		effects, err := f.inDoubt(ctx, info, turns)
		if err != nil && ctx.Err() != nil {
			return out, err
		}
		if missing := f.conn.number(info, agent.AttributeUncertain) - len(effects); missing > 0 {
			out.Unlisted += missing
		}
		for _, e := range effects {
			if out.index(e.Key) < 0 {
				out.Effects = append(out.Effects, e)
			}
		}
	}
	return out, nil
}

// inDoubt lists the effects in doubt of one run.
func (f *finder) inDoubt(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, turns int) ([]foundEffect, error) {
	at, err := parseAddress(info.GetExecution().GetWorkflowId())
	if err != nil || strings.Contains(info.GetExecution().GetWorkflowId(), "/") {
		return nil, err
	}
	var all foundEffects
	switch {
	case at.turn != 0:
		err = f.add(ctx, &all, agent.Scope{}, at)
	default:
		v, silent := f.unresolved(ctx, at.session, desk(info))
		if silent != nil {
			all, err = f.session(ctx, at.session, turns)
			break
		}
		for _, e := range v.Effects {
			all.Effects = append(all.Effects, foundEffect{Session: at.session, Turn: e.Place.Turn, Source: sourceSession, Effect: e})
		}
	}
	var out []foundEffect
	for _, e := range all.Effects {
		if doubtful(e.Effect) {
			out = append(out, e)
		}
	}
	return out, err
}

// number reads a search attribute that counts.
func (c *conn) number(info *workflowpb.WorkflowExecutionInfo, name string) int {
	var n int
	p := info.GetSearchAttributes().GetIndexedFields()[name]
	if p == nil || (decoder{c.payloads}).payload(p, &n) != nil {
		return 0
	}
	return n
}
