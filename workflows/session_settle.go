package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/effect"
)

// checkSettlement is the cheap half of looking into a word on an effect that a turn left behind.
func (s *session) checkSettlement(payload []byte) (agent.Settlement, bool) {
	x, err := approval.ParseSettlement(payload)
	var why string
	switch e, ok := s.unresolved(x.Key); {
	case err != nil:
		why = err.Error()
	case !ok && (x.Outcome != "" || !strings.HasPrefix(x.Key, s.scope.String()+":turn-")):
		why = "no effect of that key is unresolved in this session"
	case !ok && s.running != 0 && strings.HasPrefix(x.Key, fmt.Sprintf("%s:turn-%d/", s.scope, s.running)):
		s.keepLate(x)
		return x, false
	case len(s.st.Settlements) >= maxInbox:
		why = "too many settlements wait to be looked into; send it again in a moment"
	case ok:
		why = unsettleable(e, x)
	}
	if why != "" {
		s.refuseSettlement(x, why)
	}
	return x, why == "" && s.looks.worth(s.st.Settlements, x)
}

// keepLate keeps a worker's word on an effect of the turn that runs until the session knows how that ended: the worker
// found the turn closed, and this run has not heard of it yet. Between turns, when a session continues as new, none
// is left.
func (s *session) keepLate(x agent.Settlement) {
	if len(s.late) < maxInbox {
		s.late = append(s.late, letter[agent.Settlement]{x, workflow.GetInfo(s.root).WorkflowExecution.RunID})
	}
}

func (s *session) refuseSettlement(x agent.Settlement, why string) {
	if x.Outcome != "" || x.Key == "" {
		s.refuse(refusalOf(s.root, x.Key, string(x.Outcome), x.Approver, x.Ref, why))
	}
}

// settle looks into a word on an effect that a turn left behind.
func (s *session) settle(ctx workflow.Context, l letter[agent.Settlement]) {
	x := l.Body
	e, ok := s.unresolved(x.Key)
	if !ok && x.Outcome != "" {
		s.refuseSettlement(x, "it was settled before")
		return
	}
	e.Key = x.Key // one that has ended is no more kept than that: a late attempt may contradict its end
	res, err := settlement(ctx, agent.SettleInput{
		Scope: s.scope, Effect: e, Settlement: x, Run: l.Run, Store: s.st.Store, Serial: s.st.Serial,
	})
	switch {
	case err != nil:
		s.refuseSettlement(x, "it could not be looked into: "+reasonOf(err).Message)
	case res.Why != "":
		s.refuseSettlement(x, res.Why)
	default:
		s.settled(e, x, res)
	}
	s.publish()
}

// settled enters the outcome of an effect that a turn left behind. The turn's own end stands as it was.
func (s *session) settled(e agent.Effect, x agent.Settlement, res agent.SettleResult) {
	s.st.Serial = max(s.st.Serial, res.Serial)
	switch {
	case res.Looked:
		s.drop(e.Key)
		return
	case res.Effect != nil:
		s.take([]agent.Effect{*res.Effect})
		return
	}
	var l effect.Ledger // of what the word is about only: a session may hold more than a ledger takes
	for _, have := range s.st.Unresolved {
		if have.Key != e.Key && have.Key != e.Undoes {
			continue
		}
		if err := l.Add(have); err != nil {
			s.refuseSettlement(x, err.Error())
			return
		}
	}
	if err := l.SettleLate(e.Key, res.Result, workflow.Now(s.root), res.By); err != nil {
		s.refuseSettlement(x, err.Error())
		return
	}
	if e.State == agent.StateUncertain && e.Undoes != "" {
		l.Undone(e.Undoes, res.Result, workflow.Now(s.root), res.By)
	}
	s.take(l.All())
}
