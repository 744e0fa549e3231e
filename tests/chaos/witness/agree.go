package witness

import (
	"slices"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
)

func ledgerAgrees(t *trial) {
	made := t.got.made()
	for _, e := range t.ledger.effects {
		switch n := len(made[e.Key]); {
		case t.ledger.contradicted(e.Effect):
			continue
		case happened(e.State) && n == 0:
			t.blame("%s is %s, and the destination has nothing of it", e.Key, e.State)
		}
		t.undone(e)
	}
	for _, e := range t.got.Made {
		if _, ok := t.ledger.get(e.Key); !ok {
			t.blame("the destination has made %s %s under the key %q, which stands in no ledger", e.Order, e.Amount, e.Key)
		}
	}
	for i := range t.got.Turns {
		t.retold(&t.got.Turns[i])
	}
}

// undone compares an effect with what takes it back.
func (t *trial) undone(e held) {
	taken := t.got.takenBack(e.Key)
	switch {
	case e.State == agent.StateCompensated && !t.compensated(e.Key):
		t.blame("%s is compensated, and no compensation of it is committed", e.Key)
	case e.State == agent.StateCompensated && !taken && t.got.numbered(e.Key):
		t.blame("%s is compensated, and the destination has not taken it back", e.Key)
	case e.State == agent.StateCompensationFailed && t.compensated(e.Key):
		t.blame("%s could not be undone, and its compensation is committed", e.Key)
	case (e.State == agent.StateCommitted || e.State == agent.StateIrreversible) && (taken || t.compensated(e.Key)):
		t.blame("%s is %s, and was taken back", e.Key, e.State)
	}
}

// compensated says whether a compensation of an effect is committed.
func (t *trial) compensated(key string) bool {
	for _, e := range t.ledger.effects {
		if e.Undoes == key && e.State == agent.StateCommitted {
			return true
		}
	}
	return false
}

// takenBack says whether the destination has taken back what it made under a key.
func (s Story) takenBack(key string) bool {
	for _, e := range s.Made {
		for _, v := range s.Made {
			if e.Key == key && v.Voids != "" && v.Voids == e.ID {
				return true
			}
		}
	}
	return false
}

// numbered says whether the destination has a number for what it made under a key: else nobody can say what takes it back.
func (s Story) numbered(key string) bool {
	return slices.ContainsFunc(s.Made, func(e Entry) bool { return e.Key == key && e.ID != "" })
}

// retold compares the closing record of a turn with what its history says.
func (t *trial) retold(turn *Turn) {
	known := map[string]agent.State{}
	for _, e := range turn.Effects {
		known[e.Key] = e.State
	}
	for _, e := range turn.Replayed {
		now, ok := known[e.Key]
		if !ok || !becomes(e.State, now) && !becomes(now, e.State) {
			t.blame("%s is %s by the history of %s, and %q by its closing record", e.Key, e.State, turn.name(), now)
		}
	}
}

func uncertainIsSaid(t *trial) {
	made := t.got.made()
	for _, e := range t.ledger.effects {
		switch {
		case e.State == agent.StateFailed && len(made[e.Key]) > 0 && !t.ledger.contradicted(e.Effect):
			t.blame("%s is failed, the destination has made it, and nobody is told", e.Key)
		case e.final() && effect.Unresolved(e.Effect) && !t.ledger.listed[e.Key]:
			t.blame("%s is %s (conflict %q), its turn has ended, and the session does not list it", e.Key, e.State, e.Conflict)
		}
	}
}
