package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

var whole = flag.Bool("command", false, "try every edit with the whole holdfast command, which takes more than twice as long")

// histories is what is replayed: see there for what is in it.
const histories = "tests/histories"

func TestReplayFindsTheEditsThatBreakRunsAndNoOthers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds a program for each edit of the table, which takes a minute or two")
	}
	all := load(t)
	open(t, "agent", "approval", "effect", "starter", "versioning", "workflows", histories)
	w := newWorkshop(t)
	var missed, flagged names
	t.Run("breaking", func(t *testing.T) {
		for _, e := range all.Breaking {
			t.Run(e.Name, func(t *testing.T) {
				t.Parallel()
				for _, how := range e.ways() {
					r := w.replay(t, e, how)
					if len(r.Failures) == 0 {
						missed.add(e.Name)
						t.Fatalf("%s missed it, though it breaks runs: %s. No history of %s shows it, or the comparison is too lax", how, e.Why, histories)
					}
					e.explained(t, how, r)
				}
			})
		}
	})
	t.Run("harmless", func(t *testing.T) {
		for _, e := range all.Harmless {
			t.Run(e.Name, func(t *testing.T) {
				t.Parallel()
				for _, how := range e.ways() {
					if r := w.replay(t, e, how); len(r.Failures) > 0 {
						flagged.add(e.Name)
						t.Fatalf("%s flagged it on %d histories, though it breaks none: %s. The comparison is too strict\n%s", how, len(r.Failures), e.Why, r)
					}
				}
			})
		}
	})
	t.Logf("missed %d of %d edits that break runs: %q", len(missed.list), len(all.Breaking), missed.list)
	t.Logf("flagged %d of %d edits that break none: %q", len(flagged.list), len(all.Harmless), flagged.list)
}

// names collects those of edits.
type names struct {
	mu   sync.Mutex
	list []string
}

func (n *names) add(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, name)
}

// ways says what an edit is tried with.
func (e edit) ways() []way {
	switch {
	case *whole:
		return []way{command}
	case e.Command:
		return []way{heart, command}
	}
	return []way{heart}
}

// explained wants a finding to name the cause, all to name their events, and Temporal's own replay to see what the table
// says that it sees.
func (e edit) explained(t *testing.T, how way, r report) {
	t.Helper()
	t.Logf("%s says:\n%s", how, r)
	temporal, named := false, false
	for _, f := range r.Failures {
		temporal = temporal || f.Temporal
		for _, found := range f.Findings {
			if found.Event < 1 {
				t.Errorf("%s: a finding names no event: %+v", f.Source, found)
			}
			text := fmt.Sprintf("%s: history has %s, this build wants %s", found.Cause, found.Recorded, found.Wanted)
			named = named || !slices.ContainsFunc(e.Finds, func(word string) bool { return !strings.Contains(text, word) })
		}
	}
	if !named {
		t.Errorf("no finding names the cause: none has all of %q", e.Finds)
	}
	if how == heart && temporal != e.Temporal {
		t.Errorf("Temporal's own replay sees it: %v; the table says %v", temporal, e.Temporal)
	}
}

// String shows the first finding of a few histories.
func (r report) String() string {
	var b strings.Builder
	for i, f := range r.Failures {
		if i == 4 {
			fmt.Fprintf(&b, "and %d more", len(r.Failures)-i)
			break
		}
		for _, found := range f.Findings[:min(len(f.Findings), 1)] {
			fmt.Fprintf(&b, "%s, event %d: %s: history has %s, this build wants %s\n", f.Source, found.Event, found.Cause, found.Recorded, found.Wanted)
		}
	}
	return b.String()
}
