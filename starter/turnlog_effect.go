package starter

import (
	"fmt"
	"strings"

	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// What this file puts together is the ledger as far as a history tells it: for whoever has no worker to ask and
// no closing record to read. It is lenient, because a history may be another version's.

func (t *turnLog) scope() agent.Scope {
	if t.input != nil {
		return t.input.Scope
	}
	return agent.Scope{}
}

func (t *turnLog) effect(key string) *agent.Effect {
	for i := len(t.effects) - 1; i >= 0; i-- {
		if t.effects[i].Key == key {
			return t.effects[i]
		}
	}
	return nil
}

// wanted enters an effect that was asked for; a read is none.
func (t *turnLog) wanted(key string, p agent.Place, c agent.Call) {
	if c.Class == agent.ClassRead || t.effect(key) != nil {
		return
	}
	e := &agent.Effect{
		Key: key, Tool: c.Tool, Place: p, Class: c.Class, Action: c.Action, Intent: c.Intent, Summary: c.Summary, Verdict: c.Verdict,
	}
	if c.Terms != nil {
		e.Resource = c.Terms.Resource
	}
	t.effects = append(t.effects, e)
	t.moved(key, agent.StateRequested, "", "")
	switch c.Verdict.Decision {
	case agent.DecisionAllow:
		t.moved(key, agent.StateAuthorized, "", "")
	case agent.DecisionDeny:
		t.moved(key, agent.StateDenied, "", "rule "+c.Verdict.Rule)
	}
}

// moved enters a state of an effect, if there is such an effect.
func (t *turnLog) moved(key string, s agent.State, who, note string) {
	e := t.effect(key)
	if e == nil || e.State == s {
		return
	}
	e.State, e.At = s, t.now
	e.Trail = append(e.Trail, agent.Stamp{State: s, At: t.now, By: who, Note: note})
	if note != "" {
		e.Note = note
	}
}

// sent enters that a tool's activity was scheduled. That proves no dispatch.
func (t *turnLog) sent(in *agent.ToolInput) {
	t.granted(in.Grant)
	if in.Class == agent.ClassRead {
		return
	}
	key := in.Key()
	if t.effect(key) == nil {
		t.effects = append(t.effects, &agent.Effect{
			Key: key, Tool: in.Tool, Place: in.Place, Class: in.Class, Action: in.Action, Undoes: in.Undoes,
		})
	}
	t.moved(key, agent.StateAuthorized, "", "")
	if in.Grant != nil {
		t.effect(key).Approval = in.Grant.ID
	}
	if in.Undoes != "" {
		t.moved(in.Undoes, agent.StateCompensating, "", "")
		if e := t.effect(in.Undoes); e != nil {
			e.Undone = max(e.Undone, in.Undo)
		}
	}
}

// resulted enters an outcome and returns what there is to say beyond it.
func (t *turnLog) resulted(key string, r *agent.ToolResult, who string) []event {
	e := t.effect(key)
	if e == nil {
		return nil
	}
	if sent := r.State == agent.StateCommitted || r.State == agent.StateFailed || r.State == agent.StateUncertain; sent &&
		e.State == agent.StateAuthorized {
		t.moved(key, agent.StateDispatched, "", "")
	}
	t.moved(key, r.State, who, r.Note)
	if r.Attempt > 0 {
		e.Attempt = r.Attempt
	}
	if r.Evidence != "" {
		e.Evidence = r.Evidence
	}
	if r.Cancel != "" {
		e.Cancel = r.Cancel
	}
	out := []event{}
	base := event{Step: e.Place.Step, Call: e.Place.Call, Tool: e.Tool, Key: key, State: e.State, Undoes: e.Undoes}
	if r.State == agent.StateUncertain {
		u := base
		u.Type, u.Note, u.Command = evEffectUncertain, r.Note, settleCommand(key)
		u.Text = "it is not known whether tool " + line(e.Tool, 64) + " happened"
		if r.Hold {
			u.Text += "; the turn waits until somebody has found out"
		}
		u.Text += ": " + u.Command
		out = append(out, u)
	}
	if r.Conflict != "" {
		e.Conflict = r.Conflict
		c := base
		c.Type, c.Note = evEffectConflict, r.Conflict
		c.Text = "tool " + line(e.Tool, 64) + ": two outcomes contradict each other: " + line(r.Conflict, 2*lineLimit)
		out = append(out, c)
	}
	return out
}

func settleCommand(key string) string {
	return "holdfast effects settle " + quoted(key) + " --outcome 'committed|failed' --evidence '...'"
}

// extendCommand is what gives a turn more of what it has used up, as it says it; of steps when that is not known.
func extendCommand(session, waiting string) string {
	flags := "--steps 10"
	used, _, _ := strings.Cut(waiting, ":")
	for what, more := range map[string]string{" tokens": "--tokens 100000", " in cost": "--cost 1.00", " effects": "--effects 1", " of work": "--time 10m"} {
		if strings.Contains(used, what) {
			flags = more
		}
	}
	return "holdfast extend " + session + " " + flags
}

// reconciled reads what the destination or the store said about effects whose activity left no answer.
func (t *turnLog) reconciled(act *activity, r *agent.ReconcileResult) []event {
	var out []event
	for i, e := range act.ask.Effects {
		if i >= len(r.Results) {
			break
		}
		res := &r.Results[i]
		before := t.effect(e.Key)
		if before == nil {
			continue
		}
		switch {
		case endedUnsent(e.State) && res.State != agent.StateCommitted && res.State != agent.StateUncertain:
			continue // it was asked whether an earlier authority had let it go: that nothing was sent is no news
		case res.State == agent.StateUncertain:
			out = append(out, t.resulted(e.Key, res, "")...)
			continue
		}
		out = append(out, t.settledEvent(e.Key, res, ""))
		out = append(out, t.resulted(e.Key, res, "")...)
	}
	return out
}

// endedUnsent says whether an effect waits for its approval or was not to be sent when somebody asked about it.
func endedUnsent(s agent.State) bool {
	switch s {
	case agent.StateAwaitingApproval, agent.StateDeclined, agent.StateExpired, agent.StateCancelled, agent.StateSuperseded:
		return true
	}
	return false
}

func (t *turnLog) settledEvent(key string, r *agent.ToolResult, who string) event {
	e := event{Type: evEffectSettled, Key: key, State: r.State, Note: r.Evidence, By: who}
	name := "the effect " + line(key, 240)
	if known := t.effect(key); known != nil {
		e.Step, e.Call, e.Tool = known.Place.Step, known.Place.Call, known.Tool
		name = "tool " + line(known.Tool, 64)
	}
	e.Text = fmt.Sprintf("%s: settled as %s%s", name, line(string(r.State), 32), by(who))
	if seen := strings.TrimPrefix(r.Evidence, "settled"+by(who)+": "); seen != "" {
		e.Text += " (" + line(seen, lineLimit) + ")"
	}
	return e
}

// settled reads the word on a settlement. The workflow answers them in the order in which they came, and passes over
// those that it refuses at once.
func (t *turnLog) settled(ev *historypb.HistoryEvent) []event {
	var r agent.SettleResult
	if err := t.first(ev.GetMarkerRecordedEventAttributes().GetDetails()["result"], &r); err != nil {
		return []event{{Type: evEffectRefused, Text: "a settlement could not be looked into " + shown(err)}}
	}
	return t.settlement(takeLetter(&t.letters, &r), &r)
}

func (t *turnLog) settlement(l agent.Settlement, r *agent.SettleResult) []event {
	if r.Why != "" {
		return []event{{
			Type: evEffectRefused, Key: l.Key, By: l.Approver, Note: r.Why,
			Text: "a settlement" + by(l.Approver) + " does not count: " + line(r.Why, 2*lineLimit),
		}}
	}
	if r.Looked {
		if e := t.effect(l.Key); e != nil {
			e.Looked = r.Result.Evidence
		}
		return []event{t.settledEvent(l.Key, &r.Result, r.By)}
	}
	out := append([]event{t.settledEvent(l.Key, &r.Result, r.By)}, t.resulted(l.Key, &r.Result, r.By)...)
	if e := t.effect(l.Key); e != nil && e.Undoes != "" {
		if of := t.effect(e.Undoes); of != nil && r.Result.State == agent.StateCommitted {
			t.moved(of.Key, agent.StateCompensated, r.By, "")
		}
	}
	return out
}

// withdrawn enters at a turn's end that nothing of it waits any more, and that what was not sent will not be.
func (t *turnLog) withdrawn() {
	for _, a := range t.approvals {
		if a.Outcome == agent.OutcomePending {
			a.Outcome, a.Note, a.EndedAt = agent.OutcomeCancelled, "the turn has ended", t.now
		}
	}
	sent := map[string]bool{}
	for _, a := range t.order {
		if a.tool != nil {
			sent[a.tool.Key()] = true
		}
	}
	for _, e := range t.effects {
		if e.State == agent.StateAwaitingApproval || e.State == agent.StateAuthorized && !sent[e.Key] {
			t.moved(e.Key, agent.StateCancelled, "", "not sent")
		}
	}
}
