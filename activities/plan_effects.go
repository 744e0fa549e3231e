package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// A task is an effect that is to be undone.
type task struct {
	effect agent.Effect
	at     time.Time // of its dispatch
	// before says why it must not be undone now: an earlier compensation of it may have happened.
	before string
}

// todo returns the effects that are to be undone, in the order in which they were dispatched, or why there are none
// to be looked for.
func (p *planner) todo(ctx context.Context) (todo []task, why string, err error) {
	ledger := map[string]agent.Effect{}
	for _, e := range p.in.Effects {
		todo = append(todo, task{effect: e})
		ledger[e.Key] = e
	}
	switch {
	case p.in.Command != nil:
		if why, err = p.closings(ctx, ledger); why != "" || err != nil {
			return nil, why, err
		}
		todo, err = p.recorded(ctx, p.in.Of, ledger)
	case p.in.Folded:
		_, turn, _ := agent.ParseTurnID(activity.GetInfo(ctx).WorkflowExecution.ID)
		todo, err = p.recorded(ctx, turn, ledger)
	}
	if err != nil {
		return nil, "", err
	}
	todo = slices.DeleteFunc(todo, func(t task) bool {
		s := t.effect.State
		return t.effect.Undoes != "" || s != agent.StateCommitted && s != agent.StateCompensationFailed
	})
	todo, why = p.meant(todo)
	return todo, why, nil
}

// meant returns those that a person's order names: all of them, if it names none.
func (p *planner) meant(todo []task) ([]task, string) {
	if p.in.Command == nil || len(p.in.Command.Keys) == 0 {
		return todo, ""
	}
	for _, key := range p.in.Command.Keys {
		if !slices.ContainsFunc(todo, func(t task) bool { return t.effect.Key == key }) {
			return nil, fmt.Sprintf("turn %d has no effect %s that could be undone", p.in.Of, quoted(key))
		}
	}
	return slices.DeleteFunc(todo, func(t task) bool { return !slices.Contains(p.in.Command.Keys, t.effect.Key) }), ""
}

// recorded returns the effects of a turn by their dispatch records. They have the effects that a ledger only counts,
// and the compensations whose own turn left no closing record; a ledger's word on an effect is taken where it is
// the last one.
func (p *planner) recorded(ctx context.Context, turn int, ledger map[string]agent.Effect) (todo []task, err error) {
	keys, err := p.space.List(ctx, store.KindDispatches, agent.TurnKeys(p.in.Scope, turn))
	if err != nil {
		return nil, p.snap.storeTrouble(ctx, "listing the dispatch records", err)
	}
	for _, key := range keys {
		if k, ok := agent.ParseKey(key); !ok || k.Undo > 0 { // a repeat, see toolRun.again, or a compensation
			continue
		}
		t, err := p.task(ctx, key, ledger)
		if err != nil {
			return nil, err
		}
		if p.in.Command != nil { // at its own end a turn adopts by the same key
			if err = p.undone(ctx, &t, keys); err != nil {
				return nil, err
			}
		}
		todo = append(todo, t)
	}
	slices.SortStableFunc(todo, func(a, b task) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.effect.Place.Step, b.effect.Place.Step), cmp.Compare(a.effect.Place.Call, b.effect.Place.Call))
	})
	return todo, nil
}

// closings reads the ledgers of a turn's closing records, the latest word on each effect last.
func (p *planner) closings(ctx context.Context, ledger map[string]agent.Effect) (why string, err error) {
	own := store.ClosingName(p.in.Of, 0)
	names, err := p.space.List(ctx, store.KindClosings, own+"-undo-")
	if err != nil {
		return "", p.snap.storeTrouble(ctx, "listing the closing records", err)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for _, name := range append([]string{own}, names...) {
		b, err := p.space.Closing(ctx, name)
		var c Closing
		switch {
		case errors.Is(err, store.ErrAbsent) && name == own:
			return fmt.Sprintf("turn %d has not ended, or there is none: no closing record of it", p.in.Of), nil
		case err != nil && !definite(err):
			return "", p.snap.storeTrouble(ctx, "reading the closing record "+name, err)
		case err != nil || json.Unmarshal(b, &c) != nil:
			continue // the dispatch records say what was done
		}
		for _, e := range c.Ledger {
			ledger[e.Key] = e
		}
	}
	return "", nil
}

// task returns the effect of a dispatch record as the ledgers have it; one that they do not have, or that was in
// doubt when they were written, is what its own records say of it.
func (p *planner) task(ctx context.Context, key string, ledger map[string]agent.Effect) (task, error) {
	d, err := p.space.Dispatch(ctx, key)
	if err != nil && !definite(err) {
		return task{}, p.snap.storeTrouble(ctx, "reading the dispatch of "+key, err)
	}
	e, ok := ledger[key]
	if !ok {
		e = effectOf(key, d)
		e.State = agent.StateUncertain
	}
	if e.State != agent.StateUncertain {
		return task{effect: e, at: d.At}, nil
	}
	rec, err := p.space.Result(ctx, key)
	switch {
	case err != nil && !definite(err):
		return task{}, p.snap.storeTrouble(ctx, "reading the outcome of "+key, err)
	case err == nil && rec.Tool != nil:
		e.State, e.Note = rec.Tool.State, rec.Tool.Note
	}
	return task{effect: e, at: d.At}, nil
}

// undone finds out what became of earlier compensations of an effect, whose own turns may have left no record. Each
// try has a key of its own, so one that committed must not be followed by another, one whose outcome is not known must
// be settled first, and the next number is a new one.
func (p *planner) undone(ctx context.Context, t *task, keys []string) error {
	for _, undo := range keys {
		k, _ := agent.ParseKey(undo)
		if undo != agent.UndoKey(t.effect.Key, k.Undo) { // another effect's, or a repeat
			continue
		}
		t.effect.Undone = max(t.effect.Undone, k.Undo)
		d, err := p.space.Dispatch(ctx, undo)
		switch {
		case err != nil && !definite(err):
			return p.snap.storeTrouble(ctx, "reading the dispatch of "+undo, err)
		case err == nil && d.Revoked:
			continue // never sent
		}
		rec, err := p.space.Result(ctx, undo)
		switch {
		case err != nil && !definite(err):
			return p.snap.storeTrouble(ctx, "reading the outcome of "+undo, err)
		case err != nil || rec.Tool == nil:
			t.before = fmt.Sprintf("an earlier compensation may have happened and its outcome is not known: settle %s first", undo)
			continue
		case rec.Tool.State == agent.StateCommitted:
			t.effect.State = agent.StateCompensated
			continue
		}
		late, err := contradicted(ctx, p.space, undo, *rec.Tool)
		switch {
		case err != nil:
			return p.snap.storeTrouble(ctx, "reading the late outcome of "+undo, err)
		case late != "":
			t.before = fmt.Sprintf("an earlier compensation may have happened: of %s, %s", undo, late)
		}
	}
	return nil
}
