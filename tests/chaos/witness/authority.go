package witness

import (
	"slices"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

func authority(t *trial) {
	made := t.got.made()
	for _, e := range t.ledger.effects {
		if t.ledger.contradicted(e.Effect) {
			continue // it was let go before, and somebody is told
		}
		sent := len(made[e.Key]) > 0
		switch {
		case sent && refused(e):
			t.blame("%s is %s, and the destination has made it", e.Key, e.State)
		case sent || happened(e.State) || doubtful(e.State) || e.State == agent.StateFailed && e.Attempt > 0:
			t.entitled(e)
		}
	}
	for _, d := range t.got.Dispatches {
		if !d.Revoked {
			t.dispatched(d)
		}
	}
	t.denied()
	for _, e := range t.got.Made {
		if e.Amount == t.got.Refused && e.Voids == "" {
			t.blame("%s %s was made, and whoever was to approve it came too late", e.Order, e.Amount)
		}
	}
}

// refused says that an effect of that state must not have been sent. While its turn runs, one that is authorized may
// just be.
func refused(e held) bool {
	if e.State == agent.StateAuthorized {
		return e.final()
	}
	return !happened(e.State) && !doubtful(e.State) && e.State != agent.StateFailed
}

// entitled looks by which right an effect was sent.
func (t *trial) entitled(e held) {
	if !decided(e.Verdict) {
		t.blame("%s is %s, and its verdict is %+v", e.Key, e.State, e.Verdict)
		return
	}
	if e.Verdict.Decision != agent.DecisionAsk {
		return
	}
	if e.turn == nil {
		return // only its turn knows of the approval
	}
	for _, a := range e.turn.Approvals {
		if a.Key == e.Key && a.Action == e.Action && a.Outcome == agent.OutcomeApproved && agreed(a.ApprovalRequest, a.Decisions) {
			return
		}
	}
	t.blame("%s is %s, policy asked (%s), and nobody entitled has approved it", e.Key, e.State, e.Verdict.Rule)
}

// dispatched looks by which right a record says that something may have been sent. A compensation goes by the plan that
// it is part of.
func (t *trial) dispatched(d store.Dispatch) {
	e, ok := t.ledger.get(d.Key)
	switch {
	case !decided(d.Verdict):
		t.blame("the dispatch of %s has the verdict %+v", d.Key, d.Verdict)
	case ok && d.Action != e.Action:
		t.blame("what was dispatched under the key %s is not the action that its ledger has", d.Key)
	case d.Undoes == "" && d.Verdict.Decision == agent.DecisionAsk && !granted(d):
		t.blame("%s was dispatched, policy asked (%s), and the record has no approval that counts", d.Key, d.Verdict.Rule)
	}
}

// denied says what was dispatched although every worker that lived went by a policy that denies it.
func (t *trial) denied() {
	if t.got.Denied.IsZero() {
		return
	}
	var sent []string
	for _, d := range t.got.Dispatches {
		if !d.Revoked && d.At.After(t.got.Denied) {
			sent = append(sent, d.Key)
		}
	}
	if len(sent) > t.got.Admitted {
		t.blame("dispatched when policy denied it, and %d had been let in before: %q", t.got.Admitted, sent)
	}
}

func granted(d store.Dispatch) bool {
	g := d.Grant
	return g != nil && g.Action == d.Action && agreed(agent.ApprovalRequest{
		Action: g.Action, Proposed: g.Proposed, Terms: g.Terms, ExpiresAt: g.Expires, EscalatesAt: g.Escalates,
	}, g.Decisions)
}

// decided says whether policy has spoken, and did not say no.
func decided(v agent.Verdict) bool {
	return v.Rule != "" && v.Policy != "" && (v.Decision == agent.DecisionAllow || v.Decision == agent.DecisionAsk)
}

// agreed says whether enough people who may have approved exactly this action in time.
func agreed(r agent.ApprovalRequest, decisions []agent.Decided) bool {
	people := map[string]bool{}
	for _, d := range decisions {
		about := d.Digest == r.Action || d.Args != "" && d.Digest == r.Proposed // who edits names what it was made of
		inTime := r.ExpiresAt.IsZero() || !d.At.After(r.ExpiresAt)
		proved := !d.Claimed || !r.Terms.Signed
		if d.Choice == agent.ChoiceApprove && about && inTime && proved && may(r, d) {
			people[d.Approver] = true
		}
	}
	return len(people) >= max(1, r.Terms.Quorum)
}

// may says whether somebody is among those who may decide; where nobody is named, anybody is.
func may(r agent.ApprovalRequest, d agent.Decided) bool {
	if len(r.Terms.By) == 0 || slices.Contains(r.Terms.By, d.Approver) {
		return true
	}
	return !r.EscalatesAt.IsZero() && d.At.After(r.EscalatesAt) && slices.Contains(r.Terms.EscalateTo, d.Approver)
}

func recorded(t *trial) {
	if t.got.Damaged {
		return // the record may be what was damaged
	}
	known := map[string]bool{}
	for _, d := range t.got.Dispatches {
		known[d.Key] = !d.Revoked
	}
	for _, key := range t.got.Unreadable {
		known[key] = true
	}
	for key := range t.got.made() {
		if _, ok := t.ledger.get(key); ok && !known[key] {
			t.blame("the destination has made something under the key %s, and no record says that it was sent", key)
		}
	}
}
