package witness

import (
	"slices"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

func notTakenBack(t *trial) {
	for _, shown := range t.got.Shown {
		if !shown.Status.Final() {
			continue
		}
		i := slices.IndexFunc(t.got.Turns, func(now Turn) bool { return now.Number == shown.Number && now.Undo == shown.Undo })
		if i < 0 {
			t.blame("%s was shown as %s, and is gone", shown.name(), shown.Status)
			continue
		}
		t.stillSo(shown, t.got.Turns[i])
	}
}

// stillSo compares how a turn was shown with how it is.
func (t *trial) stillSo(shown, now Turn) {
	if now.Status != shown.Status {
		t.blame("%s was shown as %s, and is %s", shown.name(), shown.Status, now.Status)
	}
	if now.Answer != shown.Answer {
		t.blame("%s was shown with another answer", shown.name())
	}
	if t.got.Gaps == 0 && !slices.Equal(now.Said, shown.Said) {
		t.blame("the transcript of %s was shown otherwise: %q, and now %q", shown.name(), shown.Said, now.Said)
	}
	for _, e := range shown.Effects {
		if later, ok := t.ledger.get(e.Key); !ok || !becomes(e.State, later.State) {
			t.blame("%s was shown as %s, and is %q", e.Key, e.State, later.State)
		}
	}
}

// becomes says whether an effect of a turn that has ended may go from one state to the other, which may be the same.
func becomes(from, to agent.State) bool {
	switch {
	case from == to:
		return true
	case doubtful(from):
		return doubtful(to) || happened(to) || to == agent.StateFailed
	case from == agent.StateCompensated || from == agent.StateIrreversible:
		return false
	case happened(from):
		return happened(to) && to != agent.StateCommitted && (to != agent.StateIrreversible || from == agent.StateCommitted)
	}
	return false
}

func ended(t *trial) {
	turns, meant := numbered(t.got.Turns), numbered(t.calm.Turns)
	if turns > meant {
		t.blame("%d turns, and %d messages were sent", turns, meant)
	}
	waits := false
	for i := range t.got.Turns {
		turn := &t.got.Turns[i]
		waits = waits || !turn.Status.Final()
		t.over(turn)
	}
	if turns < meant && (t.expect == cell.Same || !waits) {
		t.blame("%d messages were sent, and only %d turns have begun", meant, turns)
	}
}

// numbered counts the turns that took a message.
func numbered(turns []Turn) (n int) {
	for _, t := range turns {
		if t.Undo == 0 {
			n++
		}
	}
	return n
}

// over looks whether a turn has ended with nothing left open.
func (t *trial) over(turn *Turn) {
	if !turn.Status.Final() {
		if t.expect == cell.Same || turn.Status != agent.StatusWaiting || turn.Waiting == "" {
			t.blame("%s is %s (waits for %q)", turn.name(), turn.Status, turn.Waiting)
		}
		return
	}
	if turn.Mute {
		t.blame("%s has ended and did not say how", turn.name())
	}
	if t.expect == cell.Same && !turn.Closed {
		t.blame("%s has ended without a closing record that can be read", turn.name())
	}
	for _, e := range turn.Effects {
		if e.State != agent.StateUncertain && e.State != agent.StateCompensationFailed && effect.Open(e.State) {
			t.blame("%s has ended, and its effect %s is %s", turn.name(), e.Key, e.State)
		}
	}
	for _, a := range turn.Approvals {
		if a.Outcome == agent.OutcomePending {
			t.blame("%s has ended, and the request %s waits", turn.name(), a.ID)
		}
	}
}
