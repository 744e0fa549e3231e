package histories

import (
	"errors"
	"math/rand/v2"
	"testing"

	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-run/holdfast/versioning/replay"
)

// Files are foreign: whatever has become of one, the answer is an error or none, and never a panic or a replay
// without end.
func TestADamagedHistoryDoesNoHarm(t *testing.T) {
	t.Parallel()
	rounds := 30
	if testing.Short() {
		rounds = 6
	}
	each(t, func(t *testing.T, h *historypb.History) {
		for seed := range rounds {
			damaged := copyOf(h)
			damage(damaged, rand.New(rand.NewPCG(uint64(seed), 1)))
			_ = today.Replay(damaged)
		}
	})
}

// FuzzDamagedHistory goes further than the rounds above.
func FuzzDamagedHistory(f *testing.F) {
	f.Add(uint64(1), uint16(0))
	f.Fuzz(func(t *testing.T, seed uint64, which uint16) {
		files := all(t)
		h := read(t, files[int(which)%len(files)])
		damage(h, rand.New(rand.NewPCG(seed, 2)))
		_ = today.Replay(h)
	})
}

// damage changes a few places of a history at random, keeping it one that [replay.Read] would take.
func damage(h *historypb.History, r *rand.Rand) {
	for range 1 + r.IntN(4) {
		events := h.GetEvents()
		if r.IntN(4) == 0 { // lose the end, or an event
			i := 1 + r.IntN(len(events)-1)
			if r.IntN(2) == 0 {
				h.Events = events[:i]
			} else {
				h.Events = append(events[:i:i], events[i+1:]...)
			}
			for i, e := range h.Events {
				e.EventId = int64(i) + 1
			}
		} else {
			garble(attributes(events[r.IntN(len(events))]), r)
		}
		if len(h.Events) < 2 {
			return
		}
	}
}

func attributes(e *historypb.HistoryEvent) protoreflect.Message {
	m := e.ProtoReflect()
	return m.Get(m.WhichOneof(m.Descriptor().Oneofs().ByName("attributes"))).Message()
}

// garble changes one field somewhere in a message.
func garble(m protoreflect.Message, r *rand.Rand) {
	var places []func()
	walk(m, func(m protoreflect.Message) {
		for f, v := range present(m) {
			places = append(places, func() { m.Clear(f) })
			switch {
			case f.IsList() || f.IsMap():
			case f.Kind() == protoreflect.StringKind:
				places = append(places, func() { m.Set(f, protoreflect.ValueOfString("garbled\x00"+v.String())) })
			case f.Kind() == protoreflect.BytesKind:
				b := append([]byte(nil), v.Bytes()...)
				places = append(places, func() {
					if len(b) > 0 {
						b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
					}
					m.Set(f, protoreflect.ValueOfBytes(b))
				})
			case f.Kind() == protoreflect.Int64Kind:
				places = append(places, func() { m.Set(f, protoreflect.ValueOfInt64(r.Int64()-r.Int64N(1<<40))) })
			}
		}
	})
	if len(places) > 0 {
		places[r.IntN(len(places))]()
	}
}

func TestARunThatHasNotBegunIsNoMismatch(t *testing.T) {
	t.Parallel()
	h := read(t, filesOf(t, release, "turn-done")[0])
	for n := 1; n <= 3; n++ { // started, task scheduled, task started
		if err := today.Replay(&historypb.History{Events: h.GetEvents()[:n]}); !errors.Is(err, replay.ErrNotRun) {
			t.Errorf("after %d events: %v", n, err)
		}
	}
}
