package starter

import (
	"cmp"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// planned reads which compensations there are.
func (t *turnLog) planned(ev *historypb.HistoryEvent) []event {
	var r agent.PlanResult
	if err := t.first(ev.GetMarkerRecordedEventAttributes().GetDetails()["result"], &r); err != nil {
		return []event{{Type: evUndoPlanned, Text: "the plan of the compensations " + shown(err)}}
	}
	if r.Then == agent.UnwindKeep && t.undo == nil {
		return nil // most turns that fail undo nothing
	}
	e := event{Type: evUndoPlanned, Note: string(r.Then)}
	switch {
	case r.Why != "":
		e.Type, e.Note = evUndoFailed, r.Why
		e.Text = "nothing is compensated: " + line(r.Why, 2*lineLimit)
	case r.Then == agent.UnwindKeep || len(r.Undos) == 0:
		e.Text = "nothing is to be compensated"
	case r.Then == agent.UnwindAsk:
		e.Text = count(len(r.Undos), "compensation") + ", each to be approved"
	default:
		e.Text = count(len(r.Undos), "compensation") + " to run"
	}
	if r.Why == "" && r.Then != agent.UnwindKeep {
		t.undos = r.Undos
	}
	return append([]event{e}, t.nextUndo()...)
}

// nextUndo goes on to the next compensation that runs or is asked for. They run one after the other, and each is
// asked for when its turn has come.
func (t *turnLog) nextUndo() []event {
	var out []event
	for len(t.undos) > 0 {
		u := t.undos[0]
		t.undos = t.undos[1:]
		if t.effect(u.Effect.Key) == nil {
			known := u.Effect
			t.effects = append(t.effects, &known)
		}
		e, runs := t.undoes(u)
		if e.Type != "" {
			out = append(out, e)
		}
		if runs {
			break
		}
	}
	return out
}

// undoes reads what becomes of one compensation: whether it runs, and what there is to say.
func (t *turnLog) undoes(u agent.Undo) (e event, runs bool) {
	of, c := u.Effect, u.Call
	e = event{Type: evUndoFailed, Tool: of.Tool, Undoes: of.Key, Step: of.Place.Step, Call: of.Place.Call}
	what := "tool " + line(cmp.Or(of.Summary, of.Tool), 64)
	switch {
	case u.Irreversible:
		t.moved(of.Key, agent.StateIrreversible, "", "declared irreversible: it stands")
		e.State, e.Text = agent.StateIrreversible, what+" cannot be undone: it is declared irreversible"
	case c.Trouble != "":
		t.moved(of.Key, agent.StateCompensationFailed, "", c.Trouble)
		e.Note, e.Text = c.Trouble, what+" cannot be undone: "+line(c.Trouble, 2*lineLimit)
	case c.Verdict.Decision == agent.DecisionDeny:
		t.moved(of.Key, agent.StateCompensationFailed, "", "policy forbids "+c.Tool+" ("+c.Verdict.Rule+")")
		e.Note, e.Text = c.Verdict.Rule, what+" cannot be undone: policy denies it by rule "+line(c.Verdict.Rule, 64)
	default:
		return t.undoBegins(of, c), true
	}
	return e, false
}

// undone enters how a compensation ended, into the effect that it was to undo too.
func (t *turnLog) undone(of string, s agent.State, note string) []event {
	switch {
	case of == "":
		return nil
	case s == agent.StateVoid:
		return nil // it is asked for again, or the next attempt says more
	case s == agent.StateCommitted:
		t.moved(of, agent.StateCompensated, "", "")
	default:
		t.moved(of, agent.StateCompensationFailed, "", strings.TrimSuffix("its compensation is "+string(s)+": "+note, ": "))
	}
	return t.nextUndo()
}

// undoBegins enters a compensation that runs, or is asked for first.
func (t *turnLog) undoBegins(of agent.Effect, c agent.Call) event {
	key := agent.UndoKey(of.Key, of.Undone+1)
	t.moved(of.Key, agent.StateCompensating, "", "")
	t.wanted(key, of.Place, c)
	if e := t.effect(key); e != nil {
		e.Undoes = of.Key
	}
	if c.Verdict.Decision != agent.DecisionAsk {
		return event{}
	}
	return t.requested(key, of.Place, c, 1, "undoes "+of.Key)
}
