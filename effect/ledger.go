package effect

import (
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// Bounds of a ledger. They decide what continue-as-new carries, so a change goes through package
// versioning.
const (
	MaxSettled = 64   // settled effects kept whole; earlier ones are folded into counts
	MaxOpen    = 1000 // open effects; a further one is refused
	MaxNote    = 500  // bytes of a note or conflict; longer ones are cut
)

// A Ledger holds the effects of one run in the order in which they were entered: those of a step that need a person
// before those that do not. The zero value is
// empty and ready. It is carried by continue-as-new as JSON. Open effects are kept whole, and so are
// those with a conflict, which must stay in sight; of the other settled ones the latest [MaxSettled]
// are, and [Ledger.Folded] counts the rest. It is not safe for concurrent use.
type Ledger struct {
	effects []agent.Effect
	folded  []agent.Count
}

// Add takes a new effect, in any state that Can knows (a denied call starts as denied). It refuses a key
// that is there and a ledger with [MaxOpen] open effects.
func (l *Ledger) Add(e agent.Effect) error {
	if e.Key == "" || !known(e.State) {
		return fmt.Errorf("effect %q: a key and a known state are needed, not %q", e.Key, e.State)
	}
	if l.index(e.Key) >= 0 {
		return fmt.Errorf("effect %q: is in the ledger already", e.Key)
	}
	if Open(e.State) && l.open() >= MaxOpen {
		return fmt.Errorf("effect %q: %d effects are open; settle some first", e.Key, MaxOpen)
	}
	l.effects = append(l.effects, bounded(e))
	l.fold(e.Key)
	return nil
}

// Move takes an effect to another state, or refuses and changes nothing. The stamp says when and by whom; its
// State is Move's, and one without a time leaves no trail. The optional function sets what else there is to say about the effect, whose key, state and
// trail are not its to change.
func (l *Ledger) Move(key string, to agent.State, s agent.Stamp, with func(*agent.Effect)) error {
	i := l.index(key)
	if i < 0 {
		return fmt.Errorf("effect %q: is not in the ledger", key)
	}
	e := l.effects[i]
	if !Can(e.State, to) {
		return fmt.Errorf("effect %q: cannot go from %s to %q", key, e.State, to)
	}
	past := e.Trail
	if with != nil {
		with(&e)
	}
	e.Key, e.State, e.Trail = key, to, past
	if !s.At.IsZero() {
		s.State = to
		e.At, e.Trail = s.At, trail(past, s)
	}
	l.effects[i] = bounded(e)
	l.fold(key)
	return nil
}

// Amend changes what is said about an effect, but for its key, state and trail.
func (l *Ledger) Amend(key string, with func(*agent.Effect)) error {
	i := l.index(key)
	if i < 0 {
		return fmt.Errorf("effect %q: is not in the ledger", key)
	}
	e := l.effects[i]
	with(&e)
	e.Key, e.State, e.Trail = key, l.effects[i].State, l.effects[i].Trail
	l.effects[i] = bounded(e)
	return nil
}

// A trail keeps the first stamps, which say how it came to be, and the latest.
const (
	firstStamps = 4
	lastStamps  = 12
)

func trail(past []agent.Stamp, s agent.Stamp) []agent.Stamp {
	s.Note = cut(s.Note)
	past = append(past[:len(past):len(past)], s)
	if len(past) <= firstStamps+lastStamps {
		return past
	}
	return append(past[:firstStamps:firstStamps], past[len(past)-lastStamps:]...)
}

// Get returns the effect of that key. A folded effect is not found.
func (l *Ledger) Get(key string) (agent.Effect, bool) {
	i := l.index(key)
	if i < 0 {
		return agent.Effect{}, false
	}
	return l.effects[i], true
}

// All returns a copy of the effects in the order of entry, without the folded ones.
func (l *Ledger) All() []agent.Effect { return append([]agent.Effect(nil), l.effects...) }

// Unresolved returns the effects that somebody has to look at: see [Unresolved].
func (l *Ledger) Unresolved() []agent.Effect {
	var out []agent.Effect
	for _, e := range l.effects {
		if Unresolved(e) {
			out = append(out, e)
		}
	}
	return out
}

// Unresolved says whether somebody has to look at an effect: its outcome is not known, or nobody has looked yet at
// what should have been undone and was not, or at what contradicts itself about it.
func Unresolved(e agent.Effect) bool {
	notUndone := e.State == agent.StateCompensationFailed || e.State == agent.StateIrreversible
	return e.State == agent.StateUncertain || e.Looked == "" && (notUndone || e.Conflict != "")
}

// Uncertain counts the effects whose outcome is not known.
func (l *Ledger) Uncertain() int {
	n := 0
	for _, e := range l.effects {
		if e.State == agent.StateUncertain {
			n++
		}
	}
	return n
}

// Compensable returns the effects that have happened, compensations aside, in the order asked for, and those whose
// compensation failed. Folded says that there are others, which only the store still knows one by one.
func (l *Ledger) Compensable() (effects []agent.Effect, folded bool) {
	for _, e := range l.effects {
		if e.Undoes == "" && (e.State == agent.StateCommitted || e.State == agent.StateCompensationFailed) {
			effects = append(effects, e)
		}
	}
	for _, c := range l.folded {
		folded = folded || c.State == agent.StateCommitted
	}
	return effects, folded
}

// Blocks returns the uncertain effect with the given intent, if there is one: while it stands, the same
// intent is not dispatched. The empty intent is nobody's.
func (l *Ledger) Blocks(intent string) (agent.Effect, bool) {
	for _, e := range l.effects {
		if intent != "" && e.Intent == intent && e.State == agent.StateUncertain {
			return e, true
		}
	}
	return agent.Effect{}, false
}

// Folded returns how many effects are only counted, by state, in the order in which the states came up.
func (l *Ledger) Folded() []agent.Count { return append([]agent.Count(nil), l.folded...) }

func (l *Ledger) index(key string) int {
	// From the end: what moves is nearly always among the latest.
	for i := len(l.effects) - 1; i >= 0; i-- {
		if l.effects[i].Key == key {
			return i
		}
	}
	return -1
}

func (l *Ledger) open() int {
	n := 0
	for _, e := range l.effects {
		if Open(e.State) {
			n++
		}
	}
	return n
}

// fold counts the earliest settled effects instead of keeping them, until at most MaxSettled are left. The one that
// was just changed stays: whoever changed it is not done with it, such as one that is void and asked for again.
func (l *Ledger) fold(changed string) {
	settled := 0
	for _, e := range l.effects {
		if foldable(e) {
			settled++
		}
	}
	if settled <= MaxSettled {
		return
	}
	kept := make([]agent.Effect, 0, len(l.effects))
	for _, e := range l.effects {
		if settled > MaxSettled && foldable(e) && e.Key != changed {
			settled--
			l.count(e.State)
			continue
		}
		kept = append(kept, e)
	}
	l.effects = kept
}

func foldable(e agent.Effect) bool { return !Open(e.State) && e.Conflict == "" }

func (l *Ledger) count(s agent.State) {
	for i := range l.folded {
		if l.folded[i].State == s {
			l.folded[i].N++
			return
		}
	}
	l.folded = append(l.folded, agent.Count{State: s, N: 1})
}

func bounded(e agent.Effect) agent.Effect {
	e.Note, e.Conflict = cut(e.Note), cut(e.Conflict)
	return e
}

func cut(s string) string {
	if len(s) <= MaxNote {
		return s
	}
	// The cut may split a rune; its rest is not valid and goes too.
	return strings.ToValidUTF8(s[:MaxNote-len("…")], "") + "…"
}
