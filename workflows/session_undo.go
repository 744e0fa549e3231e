package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/effect"
)

// onCompensate takes an order to compensate a turn that has ended. Who may give it is looked into by the
// compensation itself.
func (s *session) onCompensate(raw converter.RawValue) {
	c, err := approval.ParseCompensate(raw.Payload().GetData())
	why := ""
	switch {
	case err != nil:
		why = err.Error()
	case c.Turn > s.st.Turns:
		why = fmt.Sprintf("the session has had %d turns", s.st.Turns)
	case c.Turn == s.running:
		why = fmt.Sprintf("turn %d has not ended; cancel it first", c.Turn)
	case len(s.st.Commands) >= agent.MaxCommands:
		why = fmt.Sprintf("%d orders wait already; give it again when some are done", agent.MaxCommands)
	}
	if why != "" {
		s.refuse(refusalOf(s.root, agent.TurnID(s.scope.Session, c.Turn), "compensate", c.Approver, c.Ref, why))
		return
	}
	s.st.Commands = append(s.st.Commands, c)
}

func (s *session) refuse(f agent.Refusal) {
	s.st.Refused, s.st.More = approval.Refuse(s.st.Refused, s.st.More, f)
}

// undo runs the next order to its end: a turn that compensates and asks no model.
func (s *session) undo() {
	ctx, cancel := workflow.NewDisconnectedContext(s.root)
	defer cancel()
	c := s.st.Commands[0]
	s.st.Commands = s.st.Commands[1:]
	s.st.Undos++
	s.turns++
	s.undoing = agent.UndoID(s.scope.Session, c.Turn, s.st.Undos)
	s.publish()
	var res agent.TurnResult
	in := agent.TurnInput{
		Scope: s.scope, Turn: c.Turn, Agent: s.in.Agent, Tenant: s.in.Tenant, Head: s.st.Head,
		Undo: &agent.UndoInput{Turn: c.Turn, M: s.st.Undos, Command: c}, Origin: s.st.Origin, Store: s.st.Store, Serial: s.st.Serial,
	}
	in.Checkpoint = s.guarded(in)
	res, ended := resultOf(res, workflow.ExecuteChildWorkflow(s.undoContext(ctx, c), agent.WorkflowTurn, in).Get(ctx, &res))
	s.undoing = ""
	if !ended { // terminated: its records stand, and the order can be given again
		s.refuse(refusalOf(s.root, agent.TurnID(s.scope.Session, c.Turn), "compensate", c.Approver, c.Ref, "its workflow was ended from outside"))
		return
	}
	if res.Reason != nil {
		s.refuse(refusalOf(s.root, agent.TurnID(s.scope.Session, c.Turn), "compensate", c.Approver, c.Ref, res.Reason.Message))
	}
	s.take(res.Effects)
	s.st.Serial = max(s.st.Serial, res.Serial)
}

func (s *session) undoContext(ctx workflow.Context, c agent.Compensate) workflow.Context {
	return s.turnContext(ctx, s.undoing, fmt.Sprintf("compensate turn %d: agent %s", c.Turn, s.in.Agent),
		fmt.Sprintf("Undoes what turn %d of session `%s` has done, the last effect first.", c.Turn, s.scope.Session))
}

// take enters effects as a turn left them: what somebody has to look at is listed until that has been done.
func (s *session) take(effects []agent.Effect) {
	for _, e := range effects {
		i := slices.IndexFunc(s.st.Unresolved, func(have agent.Effect) bool { return have.Key == e.Key })
		switch {
		case !effect.Unresolved(e):
			s.drop(e.Key)
		case i < 0:
			s.st.Unresolved = append(s.st.Unresolved, e)
		default:
			s.st.Unresolved = slices.Clone(s.st.Unresolved)
			s.st.Unresolved[i] = e
		}
	}
}

func (s *session) drop(key string) {
	for i, have := range s.st.Unresolved {
		if have.Key == key {
			s.st.Unresolved = append(s.st.Unresolved[:i:i], s.st.Unresolved[i+1:]...)
			return
		}
	}
}

func (s *session) unresolved(key string) (agent.Effect, bool) {
	for _, e := range s.st.Unresolved {
		if e.Key == key {
			return e, true
		}
	}
	return agent.Effect{}, false
}

func (s *session) effectsView() agent.EffectsView {
	return agent.EffectsView{Scope: s.scope, Effects: s.st.Unresolved, Refused: s.st.Refused, More: s.st.More}
}
