package transcript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"gocloud.dev/blob"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

var other = agent.NewScope("fork", "another run")

func copyTo(t testing.TB, s *store.Store, from, to agent.Scope, h agent.Head) {
	t.Helper()
	last, all := 0, 0
	err := New(s, 0).Copy(context.Background(), from, to, h, func(done, total int) {
		if done != last+1 || done > total || all != 0 && total != all {
			t.Errorf("progress %d of %d after %d of %d", done, total, last, all)
		}
		last, all = done, total
	})
	if err != nil {
		t.Fatalf("copy of head %d: %v", h.Seq, err)
	}
	if last != all {
		t.Errorf("the last that was said is %d of %d", last, all)
	}
}

// wordy is a segment of all kinds of entries, some of them with bodies.
func wordy(rnd *rand.Rand, l *Log, i int) ([]Entry, error) {
	long := func() string { return strings.Repeat(fmt.Sprintf("%d \xff", rnd.IntN(1000)), rnd.IntN(3000)) }
	es := say(i)
	for range rnd.IntN(3) {
		es = append(es, Entry{Role: agent.RoleUser, Text: long()})
	}
	if rnd.IntN(4) == 0 {
		es[0].Calls = append(es[0].Calls, Call{ID: "x", Name: "pay", Args: long()})
	}
	if rnd.IntN(4) == 0 {
		b, err := l.store.Space(scope).PutBody(context.Background(), []byte(long()), "image/png")
		if err != nil {
			return nil, err
		}
		es = append(es, Entry{Role: agent.RoleTool, Text: "a picture", Body: &b})
	}
	return es, nil
}

func TestACopyIsTheSameTranscriptUnderTheSameHeads(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		s, b := newStore(t)
		l := New(s, 1<<20)
		heads := []agent.Head{{}}
		for i := range 1 + rnd.IntN(40) {
			es, err := wordy(rnd, l, i)
			if err != nil {
				t.Fatal(err)
			}
			h, err := l.Append(t.Context(), scope, heads[i], es)
			if err != nil {
				t.Fatal(err)
			}
			heads = append(heads, h)
		}
		for _, n := range []int{0, rnd.IntN(len(heads)), len(heads) - 1} { // the longer one goes on where the shorter ended
			copyTo(t, s, scope, other, heads[n])
			same(t, s, scope, other, heads[n])
		}
		third := agent.NewScope("fork of the fork", "")
		third.Session = "forkfork"
		copyTo(t, s, other, third, heads[len(heads)-1])
		same(t, s, scope, third, heads[len(heads)-1])
		for _, h := range heads[1:] {
			theirs := strings.Replace(objectOf(h), scope.String(), other.String(), 1)
			if !bytes.Equal(get(t, b, objectOf(h)), get(t, b, theirs)) {
				t.Errorf("seed %d: the copy of segment %d has other bytes", seed, h.Seq)
			}
		}
		said := []Entry{{Role: agent.RoleUser, Text: "and now"}}
		mine, err := l.Append(t.Context(), scope, heads[len(heads)-1], said)
		theirs, e := New(s, 0).Append(t.Context(), other, heads[len(heads)-1], said)
		if err != nil || e != nil || mine != theirs {
			t.Errorf("going on gives %v and %v, %v, %v", mine, theirs, err, e)
		}
	}
}

// same reads both up to a head and compares all that there is.
func same(t *testing.T, s *store.Store, from, to agent.Scope, h agent.Head) {
	t.Helper()
	var want []Entry
	var texts []string
	for i, scope := range []agent.Scope{from, to} {
		l := New(s, 0)
		c, err := l.Read(t.Context(), scope, h)
		if err != nil || len(c.Gaps) > 0 {
			t.Fatalf("%s: gaps %v, %v", scope, c.Gaps, err)
		}
		said, lost, err := l.Texts(t.Context(), scope, slices.DeleteFunc(slices.Clone(c.Entries), func(e Entry) bool { return e.Body != nil && e.Body.Type != "" }))
		if err != nil || len(lost) > 0 {
			t.Fatalf("%s: lost %v, %v", scope, lost, err)
		}
		if i == 0 {
			want, texts = c.Entries, said
			continue
		}
		if !sameEntries(want, c.Entries) || !slices.Equal(texts, said) {
			t.Errorf("%s at head %d reads otherwise than %s", to, h.Seq, from)
		}
		if r, err := l.Verify(t.Context(), scope, h); err != nil || !r.OK() {
			t.Errorf("%s: %+v, %v", scope, r, err)
		}
	}
}

// TestACopyIsWholeOrIsRefused takes each object of the source away in each way.
func TestACopyIsWholeOrIsRefused(t *testing.T) {
	t.Parallel()
	const most = 12
	for name, damage := range damages() {
		for i := 1; i <= most; i++ {
			s, b := newStore(t)
			heads, _ := grow(t, New(s, 1<<20), most)
			object := objectOf(heads[i])
			if bad := damage(get(t, b, object)); bad == nil {
				remove(t, b, object)
			} else {
				put(t, b, object, bad)
			}
			if repeated(i, most) {
				copyTo(t, s, scope, other, heads[most])
				if r, err := New(s, 0).Verify(t.Context(), other, heads[most]); err != nil || !r.OK() || r.Strays > 0 {
					t.Errorf("%s %d: %+v, %v", name, i, r, err)
				}
				continue
			}
			err := New(s, 0).Copy(t.Context(), scope, other, heads[most], nil)
			if !errors.Is(err, store.ErrDamaged) || !strings.Contains(err.Error(), scope.String()) {
				t.Errorf("%s %d: %v", name, i, err)
			}
			nothing(t, s)
		}
	}
}

func nothing(t *testing.T, s *store.Store) {
	t.Helper()
	if n := objects(t, s, other); n > 0 {
		t.Errorf("the copy that was refused has %d objects", n)
	}
}

// objects counts what a copy has.
func objects(t *testing.T, s *store.Store, of agent.Scope) (n int) {
	t.Helper()
	for _, kind := range []store.Kind{store.KindSegments, store.KindBodies} {
		names, err := s.Space(of).List(context.Background(), kind, "")
		if err != nil {
			t.Fatal(err)
		}
		n += len(names)
	}
	return n
}

func TestACopyNeedsEveryBody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		entry Entry
	}{
		{"text", Entry{Role: agent.RoleUser, Text: strings.Repeat("x", MaxInline+1)}},
		{"arguments", Entry{Role: agent.RoleAssistant, Calls: []Call{{ID: "a", Name: "pay", Args: strings.Repeat("y", MaxInline+1)}}}},
	} {
		for want, damage := range map[error]func(b *blob.Bucket, name string){
			store.ErrAbsent:  func(b *blob.Bucket, name string) { remove(t, b, name) },
			store.ErrDamaged: func(b *blob.Bucket, name string) { put(t, b, name, []byte("noise")) },
		} {
			s, b := newStore(t)
			h, err := New(s, 0).Append(t.Context(), scope, agent.Head{}, []Entry{c.entry})
			if err != nil {
				t.Fatal(err)
			}
			names, err := s.Space(scope).List(t.Context(), store.KindBodies, "")
			if err != nil || len(names) != 1 {
				t.Fatal(names, err)
			}
			damage(b, scope.String()+"/bodies/"+names[0])
			if err := New(s, 0).Copy(t.Context(), scope, other, h, nil); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", c.name, err, want)
			}
		}
	}
}

func TestAnInterruptedCopyGoesOnWithWhatIsMissing(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	rnd := rand.New(rand.NewPCG(7, 0))
	l := New(s, 1<<20)
	var head agent.Head
	for i := range 30 {
		es, err := wordy(rnd, l, i)
		if err == nil {
			head, err = l.Append(t.Context(), scope, head, es)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	written := func() int64 { return s.Stats().Writes }
	all := 0
	for stop := 1; all == 0 || stop < all; stop += 7 {
		to := agent.NewScope(fmt.Sprintf("fork-%d", stop), "")
		ctx, cancel := context.WithCancel(t.Context())
		err := l.Copy(ctx, scope, to, head, func(done, total int) {
			if all = total; done >= stop {
				cancel()
			}
		})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped after %d: %v", stop, err)
		}
		first, before := objects(t, s, to), written()
		copyTo(t, s, scope, to, head)
		if second := int(written() - before); first < stop || first+second != all {
			t.Errorf("stopped after %d of %d: %d and then %d were written", stop, all, first, second)
		}
		same(t, s, scope, to, head)
		before = written()
		copyTo(t, s, scope, to, head)
		if n := written() - before; n != 0 {
			t.Errorf("a copy of what is there writes %d objects", n)
		}
	}
}

func TestCopiesAtOnceDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	heads, _ := grow(t, New(s, 1<<20), 40)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := New(s, 0).Copy(t.Context(), scope, other, heads[40], nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	same(t, s, scope, other, heads[40])
}

func TestACopyInAStoreThatCannotBeUsedIsTriedAgain(t *testing.T) {
	t.Parallel()
	m := &memory{objects: map[string][]byte{}}
	s, err := store.OpenBucket(t.Context(), blob.NewBucket(m), nil)
	if err != nil {
		t.Fatal(err)
	}
	heads, _ := grow(t, New(s, 1<<20), 9)
	fault := errors.New("connection refused")
	for _, at := range []func(*error){m.read.Store, m.write.Store} {
		at(&fault)
		if err := New(s, 0).Copy(t.Context(), scope, other, heads[9], nil); !errors.Is(err, fault) || damaged(err) {
			t.Errorf("%v", err)
		}
		at(nil)
	}
	copyTo(t, s, scope, other, heads[9])
	same(t, s, scope, other, heads[9])
}

func TestWhatNamesNoTranscriptIsNotCopied(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	heads, _ := grow(t, New(s, 1<<20), 2)
	wrong := agent.Scope{Session: "../x", Life: "00000000"}
	for _, c := range []struct {
		from, to agent.Scope
		head     agent.Head
	}{
		{wrong, other, heads[2]},
		{scope, wrong, heads[2]},
		{scope, wrong, agent.Head{}},
		{scope, other, agent.Head{Seq: 2}},
		{scope, other, agent.Head{Seq: -1, Hash: heads[1].Hash}},
		{scope, other, agent.Head{Seq: 1, Hash: heads[2].Hash}},
		{scope, other, agent.Head{Seq: maxSeq, Hash: heads[2].Hash}},
		{agent.NewScope("s", "another life"), other, heads[2]},
	} {
		if err := New(s, 0).Copy(t.Context(), c.from, c.to, c.head, nil); err == nil {
			t.Errorf("%+v was copied", c)
		}
	}
	nothing(t, s)
	if err := New(s, 0).Copy(t.Context(), scope, other, agent.Head{}, nil); err != nil {
		t.Errorf("nothing cannot be copied: %v", err)
	}
	nothing(t, s)
}
