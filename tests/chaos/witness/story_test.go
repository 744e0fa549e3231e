package witness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

var (
	life  = agent.Scope{Session: "s", Life: "0123abcd"}
	noon  = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	allow = agent.Verdict{Decision: agent.DecisionAllow, Rule: "rest", Policy: "0123456789abcdef"}
	ask   = agent.Verdict{Decision: agent.DecisionAsk, Rule: "large", Policy: "0123456789abcdef"}
)

const unclear = "It is not known whether this happened: nobody answered."

// keyOf is the key of the effect of a step of the first turn.
func keyOf(step int) string {
	return agent.ActionKey(life, agent.Place{Turn: 1, Step: step, Call: 1}, actionOf(step))
}

func actionOf(step int) agent.Digest { return agent.DigestOf([]byte(fmt.Sprint("pay in step ", step))) }

// committed is an effect of a step of the first turn.
func committed(step int) agent.Effect {
	e := agent.Effect{
		Key: keyOf(step), Tool: "pay", Place: agent.Place{Turn: 1, Step: step, Call: 1}, Action: actionOf(step),
		State: agent.StateCommitted, Attempt: 1, Verdict: allow,
	}
	for _, s := range []agent.State{agent.StateRequested, agent.StateAuthorized, agent.StateDispatched, agent.StateCommitted} {
		e.Trail = append(e.Trail, agent.Stamp{State: s, At: noon})
	}
	return e
}

// takingBack is the compensation of the effect of a step.
func takingBack(step int) agent.Effect {
	e := committed(step)
	e.Key, e.Tool, e.Undoes = agent.UndoKey(e.Key, 1), "take_back", e.Key
	e.Action = agent.DigestOf([]byte(e.Key))
	return e
}

func dispatchOf(e agent.Effect) store.Dispatch {
	return store.Dispatch{Key: e.Key, Attempt: 1, Token: "t", Verdict: e.Verdict, Action: e.Action, Undoes: e.Undoes}
}

// approvalOf is alice's yes to the effect of a step.
func approvalOf(e agent.Effect) agent.Approval {
	return agent.Approval{
		ApprovalRequest: agent.ApprovalRequest{
			ID: agent.ApprovalID(e.Key, 1), Key: e.Key, Ask: 1, Action: e.Action, Verdict: ask, RequestedAt: noon, ExpiresAt: noon.Add(time.Hour),
			Terms: agent.Terms{By: []string{"alice"}, Quorum: 1, Signed: true},
		},
		Outcome: agent.OutcomeApproved,
		Decisions: []agent.Decided{{
			ApprovalDecision: agent.ApprovalDecision{Digest: e.Action, Choice: agent.ChoiceApprove, Approver: "alice"}, At: noon.Add(time.Minute),
		}},
	}
}

// pay is the undisturbed run of the scenario: an order is looked up, a payment allowed and another approved; then
// somebody says thanks.
func pay() Story {
	first, second := committed(2), committed(3)
	second.Verdict, second.Approval = ask, agent.ApprovalID(second.Key, 1)
	yes := approvalOf(second)
	let := dispatchOf(second)
	let.Grant = &agent.Grant{
		ID: yes.ID, Action: second.Action, Requested: noon, Expires: yes.ExpiresAt, Terms: yes.Terms, Decisions: yes.Decisions,
	}
	s := Story{
		Made:     []Entry{{ID: "re_1", Key: first.Key, Order: "42", Amount: "19.90"}, {ID: "re_2", Key: second.Key, Order: "43", Amount: "29.90"}},
		Requests: map[string]int{first.Key: 1, second.Key: 1},
		Turns: []Turn{
			{
				Number: 1, Status: agent.StatusDone, Closed: true, Effects: []agent.Effect{first, second}, Approvals: []agent.Approval{yes},
				Said: []string{
					"user: Refund what was broken.", "assistant: ", `tool: {"id":"42"}`, "assistant: ", `tool: {"refund":"re_1"}`,
					"assistant: ", `tool: {"refund":"re_2"}`, "assistant: Both are refunded.",
				},
				Heard: []Heard{{1, 1, "lookup_order", `{"id":"42"}`}, {2, 1, "pay", `{"refund":"re_1"}`}, {3, 1, "pay", `{"refund":"re_2"}`}},
			},
			{Number: 2, Status: agent.StatusDone, Closed: true, Said: []string{"user: Thank you.", "assistant: You are welcome."}},
		},
		Dispatches: []store.Dispatch{dispatchOf(first), let},
		Charges:    5, Calm: true,
	}
	return s.concluded()
}

// undo is the undisturbed run of the scenario: two payments, a third that waits, and a person who cancels.
func undo() Story {
	first, second, third := committed(1), committed(2), committed(3)
	first.State, second.State, third.State, third.Attempt = agent.StateCompensated, agent.StateCompensated, agent.StateCancelled, 0
	third.Verdict = ask
	no := approvalOf(third)
	no.Outcome, no.Decisions = agent.OutcomeCancelled, nil
	last, before := takingBack(2), takingBack(1)
	s := Story{
		Made: []Entry{
			{ID: "re_1", Key: first.Key, Order: "42", Amount: "19.90"},
			{ID: "re_2", Key: second.Key, Order: "43", Amount: "29.90"},
			{ID: "vo_3", Key: last.Key, Order: "43", Amount: "29.90", Voids: "re_2"},
			{ID: "vo_4", Key: before.Key, Order: "42", Amount: "19.90", Voids: "re_1"},
		},
		Turns: []Turn{{
			Number: 1, Status: agent.StatusCancelled, Closed: true,
			Effects: []agent.Effect{first, second, third, last, before}, Approvals: []agent.Approval{no},
			Said: []string{
				"user: Refund what was broken.", "assistant: ", `tool: {"refund":"re_1"}`, "assistant: ", `tool: {"refund":"re_2"}`,
				"assistant: ", "tool: not run: the turn was cancelled",
			},
			Heard: []Heard{{1, 1, "pay", `{"refund":"re_1"}`}, {2, 1, "pay", `{"refund":"re_2"}`}, {3, 1, "pay", "not run: the turn was cancelled"}},
		}},
		Dispatches: []store.Dispatch{dispatchOf(first), dispatchOf(second), dispatchOf(last), dispatchOf(before)},
		Charges:    3, Calm: true,
	}
	return s.concluded()
}

// concluded gives each turn the answer that its transcript has.
func (s Story) concluded() Story {
	for i := range s.Turns {
		t := &s.Turns[i]
		if t.Status == agent.StatusDone {
			t.Answer = agent.DigestOf([]byte(strings.TrimPrefix(t.Said[len(t.Said)-1], "assistant: ")))
		}
	}
	return s
}

// asShown is how turns are shown as they are.
func asShown(turns []Turn) []Turn {
	out := slices.Clone(turns)
	for i := range out {
		out[i].Effects = slices.Clone(out[i].Effects)
		out[i].Said = slices.Clone(out[i].Said)
	}
	return out
}

// What tests change about a story.

// effect is the i-th effect of the first turn.
func (s *Story) effect(i int) *agent.Effect { return &s.Turns[0].Effects[i] }

// becomes gives the i-th effect another state, by way of it.
func (s *Story) becomes(i int, to agent.State) {
	e := s.effect(i)
	e.State = to
	e.Trail = append(slices.Clone(e.Trail[:len(e.Trail)-1]), agent.Stamp{State: to, At: noon})
}

// tells changes what the model was told of a step.
func (s *Story) tells(step int, text string) {
	t := &s.Turns[0]
	for i, h := range t.Heard {
		if h.Step == step {
			said := slices.Index(t.Said, "tool: "+h.Text)
			t.Said[said], t.Heard[i].Text = "tool: "+text, text
		}
	}
}

// unmake takes the entry under a key out of the books.
func (s *Story) unmake(key string) {
	s.Made = slices.DeleteFunc(s.Made, func(e Entry) bool { return e.Key == key })
}

// forget takes the record of a dispatch out of the store.
func (s *Story) forget(key string) {
	s.Dispatches = slices.DeleteFunc(s.Dispatches, func(d store.Dispatch) bool { return d.Key == key })
}

// fails has the i-th effect be known not to have happened.
func (s *Story) fails(i int) {
	s.becomes(i, agent.StateFailed)
	s.unmake(s.effect(i).Key)
	s.tells(s.effect(i).Place.Step, "failed: there is no such order")
}

// doubts has nobody know the outcome of the i-th effect.
func (s *Story) doubts(i int) {
	s.becomes(i, agent.StateUncertain)
	s.tells(s.effect(i).Place.Step, unclear)
	s.lists(i)
}

// lists has the session list the i-th effect.
func (s *Story) lists(i int) { s.Unresolved = append(s.Unresolved, *s.effect(i)) }

// answers gives the first turn another answer.
func (s *Story) answers(text string) {
	t := &s.Turns[0]
	t.Said[len(t.Said)-1] = "assistant: " + text
	*s = s.concluded()
}

// without takes an effect and all that there is of it out of the story, but for what the model was told.
func (s *Story) without(i int) {
	key := s.effect(i).Key
	s.unmake(key)
	s.forget(key)
	s.Turns[0].Effects = slices.Delete(s.Turns[0].Effects, i, i+1)
}

// again is the first effect of a step a second time, under another key.
func (s *Story) again(of int) {
	e := committed(9)
	s.Turns[0].Effects = append(s.Turns[0].Effects, e)
	s.Turns[0].Heard = append(s.Turns[0].Heard, Heard{9, 1, "pay", `{"refund":"re_9"}`})
	s.Dispatches = append(s.Dispatches, dispatchOf(e))
	made := s.Made[of]
	made.ID, made.Key = "re_9", e.Key
	s.Made = append(s.Made, made)
}

// twice has the destination make an entry a second time under its key.
func (s *Story) twice(of int) {
	e := s.Made[of]
	e.ID = "re_9"
	s.Made = append(s.Made, e)
}
