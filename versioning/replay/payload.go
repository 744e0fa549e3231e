package replay

import (
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// A PayloadError says that a payload of a history is not there to be replayed.
type PayloadError struct {
	Event  int64
	Reason string // what became of the payload, and what to do
}

func (e *PayloadError) Error() string {
	return fmt.Sprintf("a payload of event %d cannot be read: %s", e.Event, e.Reason)
}

// What the SDK calls a payload that it has moved elsewhere (sdk-go internal/extstore). The second is how early
// releases wrote it.
const (
	messageType       = "messageType"
	storedMessage     = "temporal.api.sdk.v1.ExternalStorageReference"
	encodingStoredOld = "json/external-storage-reference"
)

// Stored says whether a payload only tells where its bytes are kept.
func Stored(p *commonpb.Payload) bool {
	m := p.GetMetadata()
	return string(m[messageType]) == storedMessage || string(m[converter.MetadataEncoding]) == encodingStoredOld
}

// readable refuses a history that has payloads which say nothing to workflow code. Temporal's replay would call that
// a difference.
func readable(h *historypb.History) error {
	for _, e := range h.GetEvents() {
		err := Payloads(e, func(p *commonpb.Payload) error { return legible(e.GetEventId(), p) })
		if err != nil {
			return err
		}
	}
	return nil
}

func legible(event int64, p *commonpb.Payload) error {
	if Stored(p) {
		return &PayloadError{event, "it is kept in the workers' store; replay it where their configuration and store can be read"}
	}
	switch encoding := string(p.GetMetadata()[converter.MetadataEncoding]); encoding {
	case converter.MetadataEncodingJSON, converter.MetadataEncodingNil, converter.MetadataEncodingBinary,
		converter.MetadataEncodingProto, converter.MetadataEncodingProtoJSON:
		return nil
	default:
		return &PayloadError{event, fmt.Sprintf("its encoding is %.60q; name the codec that decodes it with TEMPORAL_CODEC_ENDPOINT", encoding)}
	}
}

// Payloads visits the payloads of an event that workflow code is given or has made. Search attributes, memos and
// headers are none of these.
func Payloads(e *historypb.HistoryEvent, visit func(*commonpb.Payload) error) error {
	m := e.ProtoReflect()
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("attributes"))
	if field == nil {
		return nil
	}
	return within(m.Get(field).Message(), visit)
}

// within visits the payloads of a message. In which order is left open.
func within(m protoreflect.Message, visit func(*commonpb.Payload) error) (err error) {
	switch v := m.Interface().(type) {
	case *commonpb.Payload:
		return visit(v)
	case *commonpb.SearchAttributes, *commonpb.Memo, *commonpb.Header:
		return nil
	}
	each := func(v protoreflect.Value) bool {
		err = within(v.Message(), visit)
		return err == nil
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			if f.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { return each(v) })
			}
		case f.Message() == nil:
		case f.IsList():
			for i := 0; i < v.List().Len() && err == nil; i++ {
				each(v.List().Get(i))
			}
		default:
			each(v)
		}
		return err == nil
	})
	return err
}
