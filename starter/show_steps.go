package starter

import (
	"slices"

	"github.com/holdfast-run/holdfast/agent"
)

// shown puts together what the history says.
func (t *turnLog) shown(session string) shownTurn {
	s := shownTurn{Session: session, Turn: t.turn, Status: t.status, Reason: t.reason, Head: t.head}
	if t.waiting {
		s.Status = agent.StatusWaiting
	}
	if in := t.input; in != nil {
		s.Agent, s.Tenant, s.Store, s.Before, s.Origin = in.Agent, in.Tenant, in.Store, in.Definition, in.Origin
		if in.Message.ID != "" {
			s.Message = &in.Message
		}
	}
	if t.opened != nil {
		s.Definition, s.Model, s.Store = t.opened.Definition, t.opened.Model, t.opened.Store
		s.Policy, s.Build = t.opened.Policy, t.opened.Build
	}
	s.Change, s.Deployment, s.Versioning = t.change, t.deployment, t.behavior
	s.Boundary = slices.Concat(t.boundaries, t.crossed)
	if ts := t.began.GetEventTime(); ts != nil {
		s.Started = ts.AsTime()
	}
	if ts := t.last.GetEventTime(); ts != nil && t.ended {
		s.Ended = ts.AsTime()
	}
	for _, a := range t.order {
		t.place(&s, a)
	}
	s.Undo, s.Effects = t.undo, t.ledger()
	for _, a := range t.approvals {
		s.Approvals = append(s.Approvals, *a)
	}
	if t.result != nil {
		s.Usage, s.Closing = t.result.Usage, t.result.Closing
		if t.result.Spent != (agent.Budget{}) {
			s.Spent = &t.result.Spent
		}
	}
	return s
}

// place puts one activity where it belongs.
func (t *turnLog) place(s *shownTurn, a *activity) {
	switch {
	case a.model != nil:
		step := shownStep{Step: a.model.Step, Attempt: a.attempt, Trouble: a.trouble, Code: a.code, Boundary: a.crossed}
		if r := a.result; r != nil {
			step.head = r.Head
			step.Said, step.Finish, step.Usage, step.By, step.Adopted = r.Text, r.Finish, &r.Usage, &r.Producer, r.Adopted
			s.Usage = s.Usage.Add(r.Usage)
			for i, c := range r.Calls {
				p := a.model.Place
				p.Call = i + 1
				step.Actions = append(step.Actions, calledAction(a.model.Scope, p, c))
			}
		}
		s.Steps = append(s.Steps, step)
	case a.tool != nil && a.tool.Undoes != "":
		s.Undos = append(s.Undos, shownAction{Call: a.tool.Call})
		a.fill(&s.Undos[len(s.Undos)-1])
	case a.tool != nil:
		a.fill(s.action(a.tool.Place))
	}
}

func calledAction(s agent.Scope, p agent.Place, c agent.Call) shownAction {
	act := shownAction{
		Call: p.Call, ID: c.ID, Tool: c.Tool, Args: c.Args, Class: c.Class, Verdict: c.Verdict, Trouble: c.Trouble,
		Pending: c.Trouble == "" && c.Verdict.Decision == agent.DecisionAllow,
	}
	if c.Action != "" {
		act.Key = agent.ActionKey(s, p, c.Action)
	}
	return act
}

// fill adds what the tool's activity got and gave.
func (a *activity) fill(act *shownAction) {
	if act.Args != "" && act.Args != a.tool.Args {
		act.Proposed = act.Args
	}
	act.Tool, act.Args, act.Class, act.Undoes = a.tool.Tool, a.tool.Args, a.tool.Class, a.tool.Undoes
	act.Key, act.Code, act.Boundary = a.tool.Key(), a.code, a.crossed
	act.Result, act.Attempt, act.Pending = a.outcome, a.attempt, a.open
	if a.trouble != "" {
		act.Trouble = a.trouble
	}
}

// action finds the action at a place or makes room for one: a history need not hold its step.
func (s *shownTurn) action(p agent.Place) *shownAction {
	var step *shownStep
	for i := range s.Steps {
		if s.Steps[i].Step == p.Step {
			step = &s.Steps[i]
		}
	}
	if step == nil {
		s.Steps = append(s.Steps, shownStep{Step: p.Step})
		step = &s.Steps[len(s.Steps)-1]
	}
	for i := range step.Actions {
		if step.Actions[i].Call == p.Call {
			return &step.Actions[i]
		}
	}
	step.Actions = append(step.Actions, shownAction{Call: p.Call})
	return &step.Actions[len(step.Actions)-1]
}

// attach puts the effects and the approvals where their calls are. An edited call has approvals under two keys.
func (s *shownTurn) attach() {
	for i := range s.Steps {
		for j := range s.Steps[i].Actions {
			act := &s.Steps[i].Actions[j]
			s.fillIn(act, func(a agent.Approval) bool {
				return a.Place.Step == s.Steps[i].Step && a.Place.Call == act.Call && !isUndo(a.Key)
			})
		}
	}
	for i := range s.Undos {
		act := &s.Undos[i]
		s.fillIn(act, func(a agent.Approval) bool { return a.Key == act.Key })
	}
}

func (s *shownTurn) fillIn(act *shownAction, of func(agent.Approval) bool) {
	for _, a := range s.Approvals {
		if of(a) {
			act.Approvals = append(act.Approvals, a)
		}
	}
	slices.SortStableFunc(act.Approvals, func(a, b agent.Approval) int { return a.RequestedAt.Compare(b.RequestedAt) })
	for _, e := range s.Effects {
		if e.Key == act.Key {
			act.State = e.State
		}
	}
}

func isUndo(key string) bool {
	k, _ := agent.ParseKey(key)
	return k.Undo > 0
}
