package activities

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
	"github.com/holdfast-run/holdfast/policy"
)

// A familyKind is a storm over a session and its forks, which all ask for the same.
type familyKind struct {
	stormKind
	repeat policy.Repeat
}

func familyKinds() (kinds []familyKind) {
	for _, k := range stormKinds {
		if k.undo || k.atOnce {
			continue
		}
		for _, repeat := range []policy.Repeat{policy.RepeatDeny, policy.RepeatAsk} {
			kinds = append(kinds, familyKind{k, repeat})
		}
	}
	return kinds
}

// A relative is one of the family in the storm: a session with one action after the other, each with its ledger.
type relative struct {
	name    string
	keys    []string
	ledgers []*effect.Ledger
}

// relatives is a storm over a family.
type relatives struct {
	*storm
	kind    familyKind
	members []*relative
	// approved are the keys of actions of which a person said that they may be a repeat.
	approved []string
}

// ask has a member ask for the action at a step of its turn.
func (f *relatives) ask(n int, in agent.ToolInput, step int) {
	m := f.members[n]
	in = f.as(n, f.at(in, step))
	if f.kind.repeat == policy.RepeatAsk && f.chance(40) {
		in = f.approves(in)
	}
	l := &effect.Ledger{}
	f.set(func() { m.keys, m.ledgers = append(m.keys, in.Key()), append(m.ledgers, l) })
	f.turn(m.name, in, l)
}

// approves is a person who is told of the first of the family, if there is one, and says yes.
func (f *relatives) approves(in agent.ToolInput) agent.ToolInput {
	tl, _ := f.snap.Tools.Lookup(in.Tool)
	wanted, err := intent(tl.Spec(), in.Args)
	if err != nil {
		f.t.Fatal(err)
	}
	first := firstCommitted(f.t.Context(), f.claims(in.Scope, in.Root), wanted, in.Key())
	in = granted(in, "")
	in.Grant.Expires = time.Now().Add(24 * time.Hour)
	in.Grant.Terms.First = first
	f.say("a person approves %s, knowing of %q", in.Key(), first)
	if first != "" {
		f.set(func() { f.approved = append(f.approved, in.Key()) })
	}
	return in
}

func (f *relatives) look() {
	for _, m := range f.members {
		for i, key := range m.keys {
			f.storm.look(key, m.ledgers[i])
		}
	}
}

// rage takes all members through the storm at once, some of which ask again.
func (f *relatives) rage(in agent.ToolInput) {
	var all sync.WaitGroup
	stagger := f.pick(0, time.Second, 20*time.Second, 3*time.Minute)
	for n := range f.members {
		wait := f.span(stagger)
		again := f.chance(50)
		pause := f.span(5 * time.Minute)
		all.Go(func() {
			time.Sleep(wait)
			f.ask(n, in, 2)
			if again {
				time.Sleep(pause)
				f.ask(n, in, 7)
			}
		})
	}
	all.Wait()
	for range 10 {
		f.look()
		time.Sleep(f.pick(time.Second, 20*time.Second, time.Minute))
	}
	f.ask(int(f.span(time.Duration(len(f.members)))), in, 9) // somebody asks when all is over
	f.lives.Wait()
	time.Sleep(4 * time.Hour)
	for range 5 {
		f.look()
		time.Sleep(time.Minute)
	}
	f.judge()
}

// judge holds each member's ledgers against the books, and the books against policy: what is done a second time was
// asked for by somebody who knew of the first.
func (f *relatives) judge() {
	var done []string
	for _, m := range f.members {
		for i, key := range m.keys {
			f.storm.judge(key, m.ledgers[i])
			if f.booked(key, time.Now()) > 0 && !slices.Contains(f.approved, key) {
				done = append(done, key)
			}
		}
	}
	if len(done) > 1 && !f.lied {
		f.t.Errorf("done more than once without anybody's consent: %q", done)
	}
}

func familyWeather(t *testing.T, seed uint64, kind familyKind) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, in := newStorm(t, seed, kind.stormKind)
		s.snap.Policy = repeating(t, kind.repeat)
		f := &relatives{storm: s, kind: kind}
		for _, name := range []string{"root", "fork", "fork of the fork"}[:2+seed%2] {
			f.members = append(f.members, &relative{name: name})
		}
		f.rage(in)
		if t.Failed() {
			t.Logf("seed %d:\n%s", seed, strings.Join(s.trace, "\n"))
		}
	})
}

func TestNoStormMakesAFamilyDoTwiceWhatNobodyConsentedTo(t *testing.T) {
	t.Parallel()
	n, first := seeds(40)
	for _, kind := range familyKinds() {
		t.Run(kind.name+", "+string(kind.repeat), func(t *testing.T) {
			for seed := first; seed < first+uint64(n); seed++ {
				familyWeather(t, seed, kind)
			}
		})
	}
}
