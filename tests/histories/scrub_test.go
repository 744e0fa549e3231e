package histories

import (
	"iter"
	"os"
	"slices"
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Who took part is written over: a worker names itself and its sticky task queue after its machine. That is no
// edit of what happened: no command depends on either, and the replay does not look at them.
const (
	someone = "recorded"
	sticky  = "sticky"
)

// scrub takes the names of machines and processes out of a history.
func scrub(h *historypb.History) {
	walk(h.ProtoReflect(), func(m protoreflect.Message) {
		if q, ok := m.Interface().(*taskqueuepb.TaskQueue); ok && q.GetKind() == enumspb.TASK_QUEUE_KIND_STICKY {
			q.Name = sticky
		}
		if f := m.Descriptor().Fields().ByName("identity"); f != nil && f.Kind() == protoreflect.StringKind && m.Has(f) {
			m.Set(f, protoreflect.ValueOfString(someone))
		}
	})
}

// walk visits a message and all in it, in an order that is always the same.
func walk(m protoreflect.Message, visit func(protoreflect.Message)) {
	visit(m)
	for f, v := range present(m) {
		switch {
		case f.IsMap():
			if f.MapValue().Message() == nil {
				continue
			}
			var keys []protoreflect.MapKey
			v.Map().Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool { keys = append(keys, k); return true })
			slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
			for _, k := range keys {
				walk(v.Map().Get(k).Message(), visit)
			}
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				walk(v.List().Get(i).Message(), visit)
			}
		default:
			walk(v.Message(), visit)
		}
	}
}

// present yields the fields of a message that are set.
func present(m protoreflect.Message) iter.Seq2[protoreflect.FieldDescriptor, protoreflect.Value] {
	return func(yield func(protoreflect.FieldDescriptor, protoreflect.Value) bool) {
		fields := m.Descriptor().Fields()
		for i := range fields.Len() {
			if f := fields.Get(i); m.Has(f) && !yield(f, m.Get(f)) {
				return
			}
		}
	}
}

func TestHistoriesHoldNoSecretAndNoTraceOfAMachine(t *testing.T) {
	t.Parallel()
	host, _ := os.Hostname()
	forbidden := []string{apiKey, "/home/", "/root/", "/tmp/", "/Users/", "/var/folders/", "file:///", os.TempDir() + "/"}
	if len(host) > 3 && host != "localhost" {
		forbidden = append(forbidden, host)
	}
	each(t, func(t *testing.T, h *historypb.History) {
		before := proto.Clone(h)
		scrub(h)
		if !proto.Equal(before, h) {
			t.Error("an identity or a sticky task queue names a machine")
		}
		walk(h.ProtoReflect(), func(m protoreflect.Message) {
			for f, v := range present(m) {
				var text string
				switch {
				case f.IsList() || f.IsMap():
				case f.Kind() == protoreflect.StringKind:
					text = v.String()
				case f.Kind() == protoreflect.BytesKind:
					text = string(v.Bytes())
				}
				for _, word := range forbidden {
					if strings.Contains(text, word) {
						t.Errorf("%s holds %q: %.200s", f.FullName(), word, text)
					}
				}
			}
		})
	})
}
