package histories

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A draft is a history that is being falsified. Its edits leave one that a server could have written.
type draft struct {
	t *testing.T
	h *historypb.History
}

// nth returns the place of the n-th event of a type, from 1.
func (d *draft) nth(typ enumspb.EventType, n int) int {
	d.t.Helper()
	for i, e := range d.h.GetEvents() {
		if e.GetEventType() == typ {
			if n--; n == 0 {
				return i
			}
		}
	}
	d.t.Fatalf("the history has too few events of type %s for this edit", typ)
	return 0
}

func (d *draft) event(typ enumspb.EventType, n int) *historypb.HistoryEvent {
	d.t.Helper()
	return d.h.GetEvents()[d.nth(typ, n)]
}

// activity returns the n-th scheduled activity of a type.
func (d *draft) activity(typ string, n int) *historypb.ActivityTaskScheduledEventAttributes {
	d.t.Helper()
	for _, e := range d.h.GetEvents() {
		if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == typ {
			if n--; n == 0 {
				return a
			}
		}
	}
	d.t.Fatalf("the history has too few activities of type %q for this edit", typ)
	return nil
}

// local returns the marker of the n-th local activity of a type.
func (d *draft) local(typ string, n int) *historypb.HistoryEvent {
	d.t.Helper()
	for _, e := range d.h.GetEvents() {
		for _, p := range e.GetMarkerRecordedEventAttributes().GetDetails()["data"].GetPayloads() {
			if strings.Contains(string(p.GetData()), `"ActivityType":"`+typ+`"`) {
				if n--; n == 0 {
					return e
				}
			}
		}
	}
	d.t.Fatalf("the history has too few local activities of type %q for this edit", typ)
	return nil
}

// dropEvents removes these events.
func (d *draft) dropEvents(gone ...*historypb.HistoryEvent) {
	d.t.Helper()
	d.drop(func(e *historypb.HistoryEvent) bool { return slices.Contains(gone, e) })
}

// drop removes events and gives the others the numbers that they would have had.
func (d *draft) drop(which func(*historypb.HistoryEvent) bool) {
	d.t.Helper()
	var kept []*historypb.HistoryEvent
	for _, e := range d.h.GetEvents() {
		if !which(e) {
			kept = append(kept, e)
		}
	}
	if len(kept) == len(d.h.GetEvents()) {
		d.t.Fatal("the history has nothing to drop for this edit")
	}
	d.h.Events = kept
	d.renumber()
}

// dropActivity removes all events of the n-th scheduled activity of a type.
func (d *draft) dropActivity(typ string, n int) {
	d.t.Helper()
	id := d.activity(typ, n).GetActivityId()
	var scheduled int64
	for _, e := range d.h.GetEvents() {
		if e.GetActivityTaskScheduledEventAttributes().GetActivityId() == id {
			scheduled = e.GetEventId()
		}
	}
	d.drop(func(e *historypb.HistoryEvent) bool {
		return e.GetEventId() == scheduled || refersTo(e, "scheduled_event_id", scheduled) && isActivity(e)
	})
}

func isActivity(e *historypb.HistoryEvent) bool {
	return strings.HasPrefix(e.GetEventType().String(), "ActivityTask")
}

// insert puts an event before place i.
func (d *draft) insert(i int, e *historypb.HistoryEvent) {
	e.EventTime = d.h.GetEvents()[i-1].GetEventTime()
	d.h.Events = append(d.h.Events[:i:i], append([]*historypb.HistoryEvent{e}, d.h.Events[i:]...)...)
	d.renumber()
}

func (d *draft) swap(i, j int) {
	e := d.h.GetEvents()
	e[i], e[j] = e[j], e[i]
	d.renumber()
}

// renumber gives events the numbers of their places, and every reference with them.
func (d *draft) renumber() {
	now := map[int64]int64{}
	for i, e := range d.h.GetEvents() {
		if e.GetEventId() != 0 {
			now[e.GetEventId()] = int64(i) + 1
		}
	}
	for i, e := range d.h.GetEvents() {
		e.EventId = int64(i) + 1
		walk(e.ProtoReflect(), func(m protoreflect.Message) {
			for f, v := range present(m) {
				if f.Kind() != protoreflect.Int64Kind || f.IsList() || !strings.HasSuffix(string(f.Name()), "_event_id") {
					continue
				}
				if to, ok := now[v.Int()]; ok {
					m.Set(f, protoreflect.ValueOfInt64(to))
				}
			}
		})
	}
}

func refersTo(e *historypb.HistoryEvent, field string, id int64) (yes bool) {
	walk(e.ProtoReflect(), func(m protoreflect.Message) {
		f := m.Descriptor().Fields().ByName(protoreflect.Name(field))
		yes = yes || f != nil && m.Get(f).Int() == id
	})
	return yes
}

// reword replaces text in payloads and wants it to be there.
func (d *draft) reword(p *commonpb.Payloads, before, after string) {
	d.t.Helper()
	done := false
	for _, one := range p.GetPayloads() {
		if bytes.Contains(one.GetData(), []byte(before)) {
			one.Data, done = bytes.Replace(one.GetData(), []byte(before), []byte(after), 1), true
		}
	}
	if !done {
		d.t.Fatalf("no payload holds %q for this edit: %s", before, p)
	}
}

func copyOf[M proto.Message](m M) M { return proto.Clone(m).(M) }
