package witness

import (
	"maps"
	"slices"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

func exact(t *trial) {
	if t.expect != cell.Same {
		t.vanished()
		return
	}
	meant, made := t.calm.matters(), t.got.matters()
	for m := range made {
		if len(meant[m]) == 0 {
			t.blame("%s was made, and the undisturbed run makes no such thing", m)
		}
	}
	if blind(t.destination) {
		t.lacking()
		return
	}
	for m, keys := range meant {
		if n := len(made[m]); n < len(keys) {
			t.blame("%s was made %d times, and %d times in the undisturbed run", m, n, len(keys))
		}
	}
	for _, e := range t.ledger.effects {
		if doubtful(e.State) {
			t.blame("%s is %s, and its destination can tell", e.Key, e.State)
		}
		if e.Conflict != "" {
			t.blame("%s is contradicted, and its destination can tell: %s", e.Key, e.Conflict)
		}
	}
}

// lacking looks for effects of the undisturbed run that are not there, nor said to be uncertain.
func (t *trial) lacking() {
	for _, e := range ledgerOf(t.calm).effects {
		k, ok := agent.ParseKey(e.Key)
		if !ok || !happened(e.State) {
			continue
		}
		got, there := t.ledger.place(k)
		if there && (happened(got.State) || doubtful(got.State)) {
			continue
		}
		if k.Undo > 0 && !there && t.doubtedAt(k.Place) {
			continue // what nobody knows to have happened is not taken back
		}
		t.blame("the effect at %d.%d of turn %d (compensation %d) is %q, and %s in the undisturbed run",
			k.Place.Step, k.Place.Call, k.Place.Turn, k.Undo, got.State, e.State)
	}
}

// vanished looks for effects of the undisturbed run of which nobody says anything: in a run whose policy or people changed
// an effect may be refused, and it may stand because it could not be taken back, but not without a word.
func (t *trial) vanished() {
	for _, e := range ledgerOf(t.calm).effects {
		k, ok := agent.ParseKey(e.Key)
		turn := t.got.turn(k.Place.Turn)
		if _, there := t.ledger.place(k); !ok || there || turn == nil || t.got.Gaps > 0 {
			continue
		}
		of, _ := t.ledger.place(agent.Key{Place: k.Place})
		gaveUp := turn.Status == agent.StatusCancelled || turn.Status == agent.StatusFailed
		switch {
		case k.Undo > 0 && gaveUp && of.State == agent.StateCommitted:
			t.blame("%s is committed, its turn is %s, and nobody says that it was to be taken back", of.Key, turn.Status)
		case k.Undo == 0 && turn.Status == agent.StatusDone && !turn.heard(k.Place):
			t.blame("what is asked for at %d.%d of turn %d in the undisturbed run is not there, and nobody says so", k.Place.Step, k.Place.Call, k.Place.Turn)
		}
	}
}

// turn returns the turn of a number, nil if there is none.
func (s Story) turn(n int) *Turn {
	for i := range s.Turns {
		if s.Turns[i].Number == n && s.Turns[i].Undo == 0 {
			return &s.Turns[i]
		}
	}
	return nil
}

// heard says whether the transcript has a result of the call at a place.
func (t *Turn) heard(p agent.Place) bool {
	return slices.ContainsFunc(t.Heard, func(h Heard) bool { return h.Step == p.Step && h.Call == p.Call })
}

func (t *trial) doubtedAt(p agent.Place) bool {
	e, ok := t.ledger.place(agent.Key{Place: p})
	return ok && doubted(e.Effect)
}

func neverTwice(t *trial) {
	var twice []func()
	extra := 0
	for _, key := range slices.Sorted(maps.Keys(t.got.made())) {
		if n := len(t.got.made()[key]); n > 1 && key != "" {
			extra += n - 1
			twice = append(twice, func() { t.blame("%d entries under the key %s", n, key) })
		}
	}
	meant := t.calm.matters()
	for m, keys := range t.got.matters() {
		slices.Sort(keys)
		if n, most := len(slices.Compact(keys)), max(1, len(meant[m])); n > most {
			extra += n - most
			twice = append(twice, func() { t.blame("%s was made under %d keys: %q", m, n, keys) })
		}
	}
	if t.expect == cell.Window && ignoresKeys(t.destination) && extra <= 1 {
		twice = nil // the window that cannot be closed: a row of its own says how wide it is
	}
	for _, say := range twice {
		say()
	}
	if !blind(t.destination) {
		return
	}
	for key, n := range t.got.Requests {
		if n > 1 && key != "" {
			t.blame("%d requests under the key %s, which may be sent once", n, key)
		}
	}
}
