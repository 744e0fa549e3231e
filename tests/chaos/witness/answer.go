package witness

import (
	"slices"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

func sameAnswer(t *trial) {
	if t.expect == cell.Same {
		t.like()
	}
	for i := range t.got.Turns {
		turn := &t.got.Turns[i]
		if turn.Undo > 0 || t.got.Gaps > 0 {
			continue // there is nothing said, or something is missing in it
		}
		t.written(turn)
		t.told(turn)
	}
}

// like compares the turns with those of the undisturbed run.
func (t *trial) like() {
	plain := t.got.Calm && t.got.Gaps == 0 && !slices.ContainsFunc(t.ledger.effects, func(e held) bool { return doubted(e.Effect) })
	for i, calm := range t.calm.Turns {
		if i >= len(t.got.Turns) || !t.got.Turns[i].Status.Final() {
			return // that it has not ended is another's to say
		}
		got := t.got.Turns[i]
		if got.Status != calm.Status {
			t.blame("%s is %s, and %s in the undisturbed run", got.name(), got.Status, calm.Status)
			continue
		}
		if !plain {
			continue
		}
		if got.Answer != calm.Answer {
			t.blame("the answer of %s is another than in the undisturbed run: %q, and there %q", got.name(), got.Said, calm.Said)
		}
		if who, there := voices(got), voices(calm); !slices.Equal(who, there) {
			t.blame("in %s spoke %v, and in the undisturbed run %v", got.name(), who, there)
		}
	}
}

// voices returns who speaks in a turn, in order.
func voices(t Turn) (out []string) {
	for _, s := range t.Said {
		who, _, _ := strings.Cut(s, ": ")
		out = append(out, who)
	}
	return out
}

// written compares the answer that the history has with the transcript's.
func (t *trial) written(turn *Turn) {
	if turn.Status != agent.StatusDone {
		return
	}
	last := ""
	if n := len(turn.Said); n > 0 {
		last = turn.Said[n-1]
	}
	text, ok := strings.CutPrefix(last, string(agent.RoleAssistant)+": ")
	if !ok || agent.DigestOf([]byte(text)) != turn.Answer {
		t.blame("the transcript of %s ends with %q, which is not its answer", turn.name(), last)
	}
}

// told compares what the model was told of each call with what the ledger says of its effect.
func (t *trial) told(turn *Turn) {
	for _, e := range turn.Effects {
		if e.Undoes != "" || e.Place.Turn != turn.Number || t.ledger.contradicted(e) {
			continue
		}
		i := slices.IndexFunc(turn.Heard, func(h Heard) bool { return h.Step == e.Place.Step && h.Call == e.Place.Call })
		switch {
		case i < 0 && turn.Closed && turn.Status.Final():
			t.blame("%s is %s, and the transcript has no result of it", e.Key, e.State)
		case i >= 0 && !fits(tenor(turn.Heard[i].Text), e):
			t.blame("%s is %s, and the model was told: %q", e.Key, e.State, turn.Heard[i].Text)
		}
	}
}

// The tenors of what a model is told of a call.
const (
	done    = "it was done"
	undone  = "it was not done"
	unknown = "nobody knows"
)

// tenor says what a text tells. What a tool answered is told as it is; everything else begins with words of our own
// (packages activities and workflows).
func tenor(text string) string {
	switch {
	case strings.HasPrefix(text, "It is not known whether this happened"):
		return unknown
	case strings.HasPrefix(text, "not run"), strings.HasPrefix(text, "failed: "), strings.Contains(text, "nothing was run"):
		return undone
	}
	return done
}

// fits says whether what was told of an effect is what its ledger says, or said while the turn lasted.
func fits(tenor string, e agent.Effect) bool {
	switch tenor {
	case done:
		return happened(e.State)
	case unknown:
		return doubted(e)
	}
	return !happened(e.State) && !doubtful(e.State)
}
