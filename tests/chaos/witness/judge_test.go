package witness

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// A variation is an undisturbed run with something else about it.
type variation struct {
	name   string
	of     func() Story
	at     cell.Destination
	expect cell.Expect
	before func(*Story) // what happens while the turns last: they are shown as they are then
	after  func(*Story) // what is otherwise at the end
}

// judged returns the names of the invariants that a variation breaks, each once.
func (v variation) judged() (names []string, found []Violation) {
	s := v.of()
	if v.before != nil {
		v.before(&s)
	}
	s.Shown = asShown(s.Turns)
	if v.after != nil {
		v.after(&s)
	}
	found = Judge(v.of(), s, v.at, v.expect)
	for _, f := range found {
		names = append(names, f.Invariant)
	}
	slices.Sort(names)
	return slices.Compact(names), found
}

// TestEachWayToBreakAnInvariantIsFoundByIt changes one thing about a good story, and makes the rest agree with it.
func TestEachWayToBreakAnInvariantIsFoundByIt(t *testing.T) {
	t.Parallel()
	tried := map[string]bool{}
	for by, all := range broken() {
		tried[by] = true
		for _, v := range all {
			t.Run(by+": "+v.name, func(t *testing.T) {
				t.Parallel()
				if names, found := v.judged(); !slices.Equal(names, []string{by}) {
					t.Errorf("%d violations: %+v", len(found), found)
				}
			})
		}
	}
	for _, i := range Invariants() {
		if !tried[i.Name] || i.Sentence == "" {
			t.Errorf("%s (%q) is broken by no story here", i.Name, i.Sentence)
		}
		delete(tried, i.Name)
	}
	for name := range tried {
		t.Errorf("there is no invariant %q", name)
	}
}

// TestWhatKeepsThePromiseIsNotBlamed has what may happen in a run that is disturbed.
func TestWhatKeepsThePromiseIsNotBlamed(t *testing.T) {
	t.Parallel()
	for _, v := range good() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			if _, found := v.judged(); len(found) > 0 {
				t.Errorf("%+v", found)
			}
		})
	}
}

func broken() map[string][]variation {
	return map[string][]variation{
		"exact": {
			{"a payment is missing", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.fails(1) }, nil},
			{"a payment is missing, of a destination that can be asked", pay, cell.MCPAsked, cell.Same, func(s *Story) { s.fails(0) }, nil},
			{"a payment is missing, and nobody doubts it", pay, cell.HTTPBlind, cell.Same, func(s *Story) { s.fails(0) }, nil},
			{"the destination could tell", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.doubts(0) }, nil},
			{"another amount", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.Made[1].Amount = "2.99" }, nil},
			{"another amount, and a blind destination", pay, cell.MCPBlind, cell.Same, func(s *Story) { s.Made[1].Amount = "2.99" }, nil},
			{"a payment is not taken back", undo, cell.HTTPAsked, cell.Same, notTaken, nil},
			{"a payment is not taken back, and nothing was in doubt", undo, cell.HTTPBlind, cell.Same, notTaken, nil},
			{"a payment is not taken back, and nobody says why", undo, cell.HTTPKeyed, cell.Agree, notTaken, nil},
			{"a payment is missing, and nobody says why", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) {
				s.without(1)
				s.Turns[0].Heard = s.Turns[0].Heard[:2]
			}, nil},
		},
		"never-twice": {
			{"two entries under a key", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.twice(0) }, nil},
			{"two entries under a key, and keys are ignored", pay, cell.HTTPBlind, cell.Agree, func(s *Story) { s.twice(1) }, nil},
			{"the same under two keys", pay, cell.HTTPAsked, cell.Agree, func(s *Story) { s.again(0) }, nil},
			{"taken back twice", undo, cell.HTTPKeyed, cell.Same, func(s *Story) { s.twice(3) }, nil},
			{"two more through the window", pay, cell.HTTPAsked, cell.Window, func(s *Story) { s.twice(0); s.twice(1) }, nil},
			{"there is no window where keys are honoured", pay, cell.MCPKeyed, cell.Window, func(s *Story) { s.twice(0) }, nil},
			{"what may be sent once is sent again", pay, cell.HTTPBlind, cell.Same, func(s *Story) { s.Requests[keyOf(2)] = 2 }, nil},
		},
		"ledger-agrees": {
			{"the destination has nothing of it", pay, cell.HTTPBlind, cell.Agree, func(s *Story) { s.unmake(keyOf(2)) }, nil},
			{"nobody knows of it", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) {
				s.Made = append(s.Made, Entry{Key: keyOf(7), Order: "44", Amount: "1.00"})
			}, nil},
			{"it came without a key", pay, cell.HTTPAsked, cell.Agree, func(s *Story) {
				s.Made = append(s.Made, Entry{Order: "44", Amount: "1.00"})
			}, nil},
			{"nothing took it back", undo, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.without(4) }, nil},
			{"nothing took it back, and nothing has a number", undo, cell.HTTPKeyed, cell.Agree, func(s *Story) {
				s.without(4)
				s.Made[0].ID = ""
			}, nil},
			{"it was taken back and is said to be undone by nothing", undo, cell.HTTPKeyed, cell.Agree, func(s *Story) {
				s.becomes(0, agent.StateCompensationFailed)
				s.lists(0)
			}, nil},
			{"what took it back is not made", undo, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.unmake(s.effect(4).Key) }, nil},
			{"what took it back is another's", undo, cell.HTTPBlind, cell.Agree, func(s *Story) { s.Made[3].Voids = "re_7" }, nil},
			{"it was taken back and nobody says so", undo, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.becomes(0, agent.StateCommitted) }, nil},
			{"the closing record is another's", pay, cell.HTTPKeyed, cell.Same, func(s *Story) {
				s.Turns[0].Replayed = slices.Clone(s.Turns[0].Effects)
				s.Turns[0].Replayed[1].State = agent.StateFailed
			}, nil},
			{"the closing record lacks one", pay, cell.HTTPKeyed, cell.Same, func(s *Story) {
				s.Turns[1].Replayed = []agent.Effect{committed(2)}
			}, nil},
		},
		"uncertain-is-said": {
			{"failed, and it was made", pay, cell.HTTPBlind, cell.Agree, func(s *Story) {
				s.becomes(0, agent.StateFailed)
				s.tells(2, "failed: no answer")
			}, nil},
			{"uncertain, and not listed", pay, cell.HTTPBlind, cell.Same, func(s *Story) { s.doubts(0); s.Unresolved = nil }, nil},
			{"not listed any more, and never settled", pay, cell.HTTPBlind, cell.Same, func(s *Story) { s.doubts(0) }, func(s *Story) { s.Unresolved = nil }},
			{"contradicted, and not listed", pay, cell.HTTPAsked, cell.Agree, func(s *Story) { s.effect(0).Conflict = "attempt 1 saw failed" }, nil},
			{"not undone, and not listed", undo, cell.HTTPKeyed, cell.Agree, func(s *Story) {
				s.without(4)
				s.becomes(0, agent.StateCompensationFailed)
			}, nil},
		},
		"authority": brokenAuthority(),
		"recorded": {
			{"no record of the dispatch", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.forget(keyOf(2)) }, nil},
			{"the record says that nothing is sent", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.Dispatches[0].Revoked = true }, nil},
		},
		"not-taken-back": {
			{"another status", pay, cell.HTTPKeyed, cell.Agree, nil, func(s *Story) { s.Turns[0].Status = agent.StatusFailed }},
			{"another answer", pay, cell.HTTPKeyed, cell.Agree, nil, func(s *Story) { s.answers("None is refunded.") }},
			{"another answer, and the transcript cannot tell", pay, cell.HTTPKeyed, cell.Agree, nil, func(s *Story) {
				s.Turns[0].Answer, s.Gaps = agent.DigestOf([]byte("None is refunded.")), 1
			}},
			{"another transcript", pay, cell.HTTPKeyed, cell.Same, nil, func(s *Story) { s.Turns[0].Said[0] = "user: Refund nothing." }},
			{"committed, and then not", pay, cell.HTTPKeyed, cell.Agree, nil, func(s *Story) { s.fails(0) }},
			{"committed, and then in doubt", pay, cell.HTTPBlind, cell.Agree, nil, func(s *Story) { s.doubts(0) }},
			{"failed, and then committed", pay, cell.HTTPBlind, cell.Agree, func(s *Story) { s.fails(0) }, func(s *Story) {
				s.becomes(0, agent.StateCommitted)
				s.tells(2, "refunded")
				s.Made = append(s.Made, Entry{ID: "re_1", Key: keyOf(2), Order: "42", Amount: "19.90"})
			}},
			{"compensated, and then not", undo, cell.HTTPKeyed, cell.Agree, nil, func(s *Story) { s.Gaps = 1; notTaken(s) }},
			{"nothing undoes it, and then something could not", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) {
				s.becomes(0, agent.StateIrreversible)
				s.lists(0)
			}, func(s *Story) { s.becomes(0, agent.StateCompensationFailed) }},
			{"an effect is gone", pay, cell.HTTPKeyed, cell.Agree, nil, func(s *Story) { s.without(1) }},
			{"a turn is gone", pay, cell.HTTPKeyed, cell.Same, nil, func(s *Story) { s.Shown = append(s.Shown, Turn{Number: 3, Status: agent.StatusDone}) }},
		},
		"same-answer": {
			{"another answer", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.answers("None is refunded.") }, nil},
			{"another status", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.Turns[1].Status = agent.StatusFailed }, nil},
			{"another status, and an effect is in doubt", pay, cell.HTTPBlind, cell.Same, func(s *Story) {
				s.doubts(0)
				s.Turns[0].Status = agent.StatusCancelled
			}, nil},
			{"something is said twice", pay, cell.HTTPKeyed, cell.Same, func(s *Story) {
				s.Turns[0].Said = slices.Insert(s.Turns[0].Said, 1, s.Turns[0].Said[0])
			}, nil},
			{"the transcript has another answer", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.Turns[1].Said[1] = "assistant: Go away." }, nil},
			{"told of success", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.fails(0); s.tells(2, `{"refund":"re_1"}`) }, nil},
			{"told of failure", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.tells(2, "failed: no such order") }, nil},
			{"told that it was refused", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.tells(3, "not allowed (large): nothing was run") }, nil},
			{"told of a doubt that there never was", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.tells(2, unclear) }, nil},
			{"told of success, and it is in doubt", pay, cell.HTTPBlind, cell.Agree, func(s *Story) { s.doubts(0); s.tells(2, "refunded") }, nil},
			{"told of failure, and it is in doubt", pay, cell.HTTPBlind, cell.Agree, func(s *Story) { s.doubts(0); s.tells(2, "not run: withdrawn") }, nil},
			{"told nothing", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.Turns[0].Heard = s.Turns[0].Heard[:2] }, nil},
		},
		"ended": {
			{"it runs", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.Turns[1].Status = agent.StatusRunning }, nil},
			{"it waits", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.Turns[1].Status, s.Turns[1].Waiting = agent.StatusWaiting, "an approval" }, nil},
			{"it waits for nothing", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.Turns[1].Status = agent.StatusWaiting }, nil},
			{"a message is lost", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.Turns = s.Turns[:1] }, nil},
			{"a message is taken twice", pay, cell.HTTPKeyed, cell.Same, func(s *Story) {
				s.Turns = append(s.Turns, s.Turns[1])
				s.Turns[2].Number = 3
			}, nil},
			{"an effect is left open", undo, cell.HTTPKeyed, cell.Same, func(s *Story) { s.becomes(2, agent.StateAuthorized) }, nil},
			{"an effect was dispatched, and that is all", pay, cell.HTTPBlind, cell.Same, func(s *Story) {
				s.doubts(0)
				s.effect(0).State = agent.StateDispatched
			}, nil},
			{"a request waits", undo, cell.HTTPKeyed, cell.Same, func(s *Story) { s.Turns[0].Approvals[0].Outcome = agent.OutcomePending }, nil},
			{"it did not say how", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.Turns[1].Mute = true }, nil},
			{"no closing record", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.Turns[1].Closed = false }, nil},
		},
		"attention": {{"a wait is not listed", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.Unlisted = []string{"an approval"} }, nil}},
		"stuck":     {{"a workflow is stuck", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.Stuck = []string{"s:turn-1"} }, nil}},
		"replay":    {{"a run does not replay", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.Replay = []string{"s:turn-1"} }, nil}},
	}
}

// notTaken has the first payment stand.
func notTaken(s *Story) {
	s.without(4)
	s.becomes(0, agent.StateCommitted)
}

func brokenAuthority() []variation {
	approval := func(change func(*agent.Approval)) func(*Story) {
		return func(s *Story) { change(&s.Turns[0].Approvals[0]) }
	}
	decision := func(change func(*agent.Decided)) func(*Story) {
		return approval(func(a *agent.Approval) {
			a.Decisions = slices.Clone(a.Decisions) // the grant in the dispatch record is another witness
			change(&a.Decisions[0])
		})
	}
	refused := func(state agent.State) func(*Story) {
		return func(s *Story) {
			s.becomes(0, state)
			s.tells(2, "not run: "+string(state))
		}
	}
	var out []variation
	add := func(name string, expect cell.Expect, before func(*Story)) {
		out = append(out, variation{name, pay, cell.HTTPKeyed, expect, before, nil})
	}
	add("no rule", cell.Same, func(s *Story) { s.effect(0).Verdict.Rule = "" })
	add("no policy", cell.Same, func(s *Story) { s.effect(0).Verdict.Policy = "" })
	add("no verdict", cell.Same, func(s *Story) { s.effect(0).Verdict = agent.Verdict{} })
	add("policy said no", cell.Same, func(s *Story) { s.effect(0).Verdict.Decision = agent.DecisionDeny })
	add("nobody was asked", cell.Same, func(s *Story) { s.Turns[0].Approvals = nil })
	add("somebody declined", cell.Same, approval(func(a *agent.Approval) { a.Outcome = agent.OutcomeDeclined }))
	add("of another action", cell.Same, approval(func(a *agent.Approval) { a.Action = actionOf(7) }))
	add("of another key", cell.Same, approval(func(a *agent.Approval) { a.Key = keyOf(7) }))
	add("two had to say yes", cell.Same, approval(func(a *agent.Approval) { a.Terms.Quorum = 2 }))
	add("the same person twice", cell.Same, approval(func(a *agent.Approval) {
		a.Terms.Quorum, a.Decisions = 2, append(slices.Clone(a.Decisions), a.Decisions[0])
	}))
	add("a decision on another action", cell.Same, decision(func(d *agent.Decided) { d.Digest = actionOf(7) }))
	add("a no", cell.Same, decision(func(d *agent.Decided) { d.Choice = agent.ChoiceDecline }))
	add("by somebody else", cell.Same, decision(func(d *agent.Decided) { d.Approver = "mallory" }))
	add("without a signature", cell.Same, decision(func(d *agent.Decided) { d.Claimed = true }))
	add("too late", cell.Same, decision(func(d *agent.Decided) { d.At = noon.Add(2 * time.Hour) }))
	add("by whom it escalates to, too early", cell.Same, approval(func(a *agent.Approval) {
		a.Terms.By, a.Terms.EscalateTo, a.EscalatesAt = []string{"bob"}, []string{"alice"}, noon.Add(time.Hour)
	}))
	for _, state := range []agent.State{
		agent.StateDenied, agent.StateDeclined, agent.StateExpired, agent.StateVoid, agent.StateCancelled, agent.StateSuperseded,
	} {
		add("made though "+string(state), cell.Agree, refused(state))
	}
	add("in doubt, and without a verdict", cell.Agree, func(s *Story) { s.doubts(0); s.effect(0).Verdict.Rule = "" })
	add("a dispatch without a verdict", cell.Same, func(s *Story) { s.Dispatches[0].Verdict = agent.Verdict{} })
	add("a dispatch that policy forbade", cell.Same, func(s *Story) { s.Dispatches[0].Verdict.Decision = agent.DecisionDeny })
	add("a dispatch of another action", cell.Same, func(s *Story) { s.Dispatches[0].Action = actionOf(7) })
	add("a dispatch without an approval", cell.Same, func(s *Story) { s.Dispatches[1].Grant = nil })
	add("a dispatch with somebody else's approval", cell.Same, func(s *Story) { s.Dispatches[1].Grant.Terms.By = []string{"bob"} })
	add("a dispatch with the approval of another action", cell.Same, func(s *Story) { s.Dispatches[1].Grant.Action = actionOf(7) })
	return out
}

func good() []variation {
	out := []variation{
		{"there and sent again under its key", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.Requests[keyOf(2)] = 3 }, nil},
		{"in doubt, and made", pay, cell.HTTPBlind, cell.Same, func(s *Story) { s.doubts(0); s.answers("One may be refunded.") }, nil},
		{"in doubt, and not made", pay, cell.MCPBlind, cell.Same, func(s *Story) { s.doubts(0); s.unmake(keyOf(2)); s.forget(keyOf(2)) }, nil},
		{"in doubt, and settled by whoever came late", pay, cell.HTTPBlind, cell.Same, func(s *Story) { s.doubts(0) }, settledLate},
		{"in doubt, and late found not to have happened", pay, cell.HTTPAsked, cell.Agree, func(s *Story) { s.doubts(0) }, func(s *Story) {
			settledLate(s)
			s.effect(0).State = agent.StateFailed
			s.unmake(keyOf(2))
		}},
		{"what is in doubt is not taken back", undo, cell.HTTPBlind, cell.Same, func(s *Story) { s.without(4); s.doubts(0) }, nil},
		{"the taking back is in doubt", undo, cell.HTTPBlind, cell.Same, func(s *Story) {
			s.becomes(4, agent.StateUncertain)
			s.becomes(0, agent.StateCompensationFailed)
			s.lists(4)
			s.lists(0)
		}, nil},
		{"numbers depend on what was made before", undo, cell.HTTPKeyed, cell.Same, func(s *Story) {
			s.Made[0].ID, s.Made[3].Voids = "re_7", "re_7"
		}, nil},
		{"through the window", pay, cell.HTTPAsked, cell.Window, func(s *Story) { s.twice(0) }, nil},
		{"policy came to forbid it", pay, cell.HTTPKeyed, cell.Agree, forbidden, nil},
		{"policy came to forbid what may have been sent", pay, cell.HTTPBlind, cell.Agree, func(s *Story) { s.doubts(0); s.Calm = false }, nil},
		{"policy forbade it before it was asked for", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) {
			s.Calm = false
			s.without(1)
			s.tells(3, `not run: policy says deny (rule "revoked")`)
			s.answers("One is refunded.")
		}, nil},
		{"policy forbade to take it back", undo, cell.HTTPKeyed, cell.Agree, func(s *Story) {
			s.without(4)
			s.becomes(0, agent.StateCompensationFailed)
			s.lists(0)
		}, nil},
		{"it expired", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) {
			forbidden(s)
			s.becomes(1, agent.StateExpired)
			s.Turns[0].Approvals[0].Outcome, s.Turns[0].Approvals[0].Decisions = agent.OutcomeExpired, nil
		}, nil},
		{"another agent answers otherwise", pay, cell.HTTPKeyed, cell.Same, func(s *Story) { s.Calm = false; s.answers("Done.") }, nil},
		{"the turn failed where it may", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) { s.fails(1); s.Turns[0].Status = agent.StatusFailed }, nil},
		{"it waits for somebody, and a message waits for it", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) {
			s.Turns = s.Turns[:1]
			s.Turns[0].Status, s.Turns[0].Waiting, s.Queued = agent.StatusWaiting, "an approval of pay", 1
		}, nil},
		{"it is being sent", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) {
			s.Turns[1].Effects = []agent.Effect{committed(5)}
			s.Turns[1].Effects[0].State = agent.StateAuthorized
			s.Dispatches = append(s.Dispatches, dispatchOf(committed(5)))
			s.Made = append(s.Made, Entry{ID: "re_3", Key: keyOf(5), Order: "44", Amount: "1.00"})
			s.Turns[1].Status, s.Turns[1].Waiting = agent.StatusWaiting, "more budget"
		}, nil},
		{"a contradiction is listed", pay, cell.HTTPBlind, cell.Agree, func(s *Story) {
			s.becomes(0, agent.StateFailed)
			s.tells(2, "failed: withdrawn")
			s.effect(0).Conflict = "attempt 1 saw committed"
			s.lists(0)
		}, nil},
		{"a contradiction about what committed is listed", pay, cell.HTTPBlind, cell.Agree, func(s *Story) {
			s.unmake(keyOf(2))
			s.effect(0).Conflict = "attempt 1 saw failed"
			s.lists(0)
		}, nil},
		{"by an earlier approval it was sent, and that is listed", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) {
			s.becomes(1, agent.StateDeclined)
			s.Turns[0].Approvals = nil
			s.effect(1).Conflict = "declined, but by an earlier approval it was sent"
			s.lists(1)
		}, nil},
		{"only the session knows of it any more", pay, cell.HTTPBlind, cell.Agree, func(s *Story) {
			e := committed(7)
			e.State, e.Verdict = agent.StateUncertain, ask
			s.Unresolved = append(s.Unresolved, e)
		}, nil},
		{"what was shown while it lasted", pay, cell.HTTPKeyed, cell.Same, nil, func(s *Story) {
			s.Shown = append(s.Shown, Turn{Number: 1, Status: agent.StatusWaiting, Effects: []agent.Effect{{Key: keyOf(2), State: agent.StateVoid}}})
		}},
		{"nothing has a number", undo, cell.HTTPKeyed, cell.Agree, func(s *Story) {
			for i := range s.Made {
				e := &s.Made[i]
				e.Order += e.Voids // all that such a destination says of what is taken back
				e.ID, e.Voids = "", ""
			}
		}, nil},
		{"something is missing in the transcript", pay, cell.HTTPKeyed, cell.Same, func(s *Story) {
			s.Gaps, s.Turns[0].Said, s.Turns[0].Heard = 1, s.Turns[0].Said[3:], nil
			s.answers("I cannot see what was said.")
		}, nil},
		{"the record of a dispatch cannot be read", pay, cell.HTTPAsked, cell.Same, func(s *Story) { s.forget(keyOf(2)); s.Unreadable = []string{keyOf(2)} }, nil},
		{"the harness took a record away", pay, cell.HTTPAsked, cell.Same, func(s *Story) { s.forget(keyOf(2)); s.Damaged = true }, nil},
		{"withdrawn for good", pay, cell.HTTPKeyed, cell.Agree, func(s *Story) {
			forbidden(s)
			s.Dispatches = append(s.Dispatches, store.Dispatch{Key: keyOf(3), Token: "t", Revoked: true})
		}, nil},
		{"an approver edited it", pay, cell.HTTPKeyed, cell.Same, func(s *Story) {
			a := &s.Turns[0].Approvals[0]
			a.Proposed, a.Decisions = actionOf(7), slices.Clone(a.Decisions)
			a.Decisions[0].Digest, a.Decisions[0].Args = actionOf(7), `{"order":"43"}`
		}, nil},
		{"it had escalated", pay, cell.HTTPKeyed, cell.Same, func(s *Story) {
			a := &s.Turns[0].Approvals[0]
			a.Terms.By, a.Terms.EscalateTo, a.EscalatesAt = []string{"bob"}, []string{"alice"}, noon
		}, nil},
		{"taken back later, by order", pay, cell.HTTPKeyed, cell.Agree, nil, takenBackLater},
		{"the history has what the closing record could not", pay, cell.HTTPBlind, cell.Same, func(s *Story) {
			s.Turns[0].Replayed = slices.Clone(s.Turns[0].Effects)
			s.doubts(0)
		}, nil},
	}
	for _, d := range []cell.Destination{cell.HTTPKeyed, cell.HTTPAsked, cell.HTTPBlind, cell.MCPKeyed, cell.MCPAsked, cell.MCPBlind} {
		for _, e := range []cell.Expect{cell.Same, cell.Agree, cell.Window} {
			out = append(out,
				variation{"undisturbed, " + string(d) + ", " + string(e), pay, d, e, nil, nil},
				variation{"undisturbed and undone, " + string(d) + ", " + string(e), undo, d, e, nil, nil},
			)
		}
	}
	return out
}

// settledLate has the session settle the first effect, which was in doubt when the turn ended.
func settledLate(s *Story) {
	e := s.effect(0)
	e.State = agent.StateCommitted
	e.Trail = append(slices.Clone(e.Trail), agent.Stamp{State: e.State, At: noon})
	s.Unresolved = nil
}

// forbidden has policy forbid the second payment after it was approved.
func forbidden(s *Story) {
	s.Calm = false
	s.becomes(1, agent.StateDenied)
	s.unmake(keyOf(3))
	s.forget(keyOf(3))
	s.tells(3, "not allowed (revoked): nothing was run")
	s.answers("One is refunded.")
}

// takenBackLater has a late compensation take the first payment back.
func takenBackLater(s *Story) {
	of, by := committed(2), takingBack(2)
	of.State = agent.StateCompensated
	s.Turns = append(s.Turns, Turn{Number: 1, Undo: 1, Status: agent.StatusDone, Closed: true, Effects: []agent.Effect{of, by}})
	s.Dispatches = append(s.Dispatches, dispatchOf(by))
	s.Made = append(s.Made, Entry{ID: "vo_3", Key: by.Key, Order: "42", Amount: "19.90", Voids: "re_1"})
}
