package witness

import (
	"slices"

	"github.com/holdfast-run/holdfast/agent"
)

// A held effect is one with the turn whose ledger holds it, nil when only the session's list does.
type held struct {
	agent.Effect
	turn *Turn
}

// final says whether its turn has ended.
func (h held) final() bool { return h.turn == nil || h.turn.Status.Final() }

// A ledger is what all ledgers of a session say together, in their order. Where a late compensation holds an effect of
// its turn as well, it knows more.
type ledger struct {
	effects []held
	at      map[string]int
	listed  map[string]bool // what the session lists
}

func ledgerOf(s Story) ledger {
	l := ledger{at: map[string]int{}, listed: map[string]bool{}}
	for i := range s.Turns {
		for _, e := range s.Turns[i].Effects {
			l.enter(held{e, &s.Turns[i]})
		}
	}
	for _, e := range s.Unresolved {
		l.listed[e.Key] = true
		if _, ok := l.at[e.Key]; !ok {
			l.enter(held{e, nil})
		}
	}
	return l
}

func (l *ledger) enter(h held) {
	if i, ok := l.at[h.Key]; ok {
		l.effects[i].Effect = h.Effect // what is known of its approval stays with its own turn
		return
	}
	l.at[h.Key] = len(l.effects)
	l.effects = append(l.effects, h)
}

func (l ledger) get(key string) (held, bool) {
	i, ok := l.at[key]
	if !ok {
		return held{}, false
	}
	return l.effects[i], true
}

// place finds the effect that was asked for at a place, or the compensation of it.
func (l ledger) place(k agent.Key) (held, bool) {
	for _, h := range l.effects {
		if own, ok := agent.ParseKey(h.Key); ok && own.Place == k.Place && own.Undo == k.Undo {
			return h, true
		}
	}
	return held{}, false
}

// contradicted says that the effect is listed because what is known of it contradicts itself: then nothing is hidden.
func (l ledger) contradicted(e agent.Effect) bool { return e.Conflict != "" && l.listed[e.Key] }

// doubted says whether the outcome of an effect is not known, or was not for a time.
func doubted(e agent.Effect) bool {
	return doubtful(e.State) || slices.ContainsFunc(e.Trail, func(s agent.Stamp) bool { return s.State == agent.StateUncertain })
}

// happened says whether an effect of that state has taken place, whatever became of it later.
func happened(s agent.State) bool {
	switch s {
	case agent.StateCommitted, agent.StateCompensating, agent.StateCompensated, agent.StateCompensationFailed, agent.StateIrreversible:
		return true
	}
	return false
}

// doubtful says whether an effect of that state may have taken place.
func doubtful(s agent.State) bool {
	return s == agent.StateDispatched || s == agent.StateAcknowledged || s == agent.StateUncertain
}

// made returns the entries under each key.
func (s Story) made() map[string][]Entry {
	out := map[string][]Entry{}
	for _, e := range s.Made {
		out[e.Key] = append(out[e.Key], e)
	}
	return out
}

// A matter is what an entry is about, whatever its key and its number.
type matter struct {
	order, amount string
	of            string // what it takes back
}

// matters returns the keys under which each matter was made.
func (s Story) matters() map[matter][]string {
	out := map[matter][]string{}
	for _, e := range s.Made {
		m := matter{e.Order, e.Amount, e.Voids}
		for _, taken := range s.Made {
			if e.Voids != "" && taken.ID == e.Voids { // numbers depend on what was made before
				m.of = taken.Order + " " + taken.Amount
			}
		}
		out[m] = append(out[m], e.Key)
	}
	return out
}

func (m matter) String() string {
	what := m.order + " " + m.amount
	if m.of != "" {
		what += ", taking back " + m.of
	}
	return what
}
