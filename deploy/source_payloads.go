package deploy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/holdfast-run/holdfast/versioning/replay"
)

// payloads give back to histories what workers have moved to the store or encoded, in the order in which the SDK does:
// what lies in the store was encoded before. A replay is then one of plain payloads.
type payloads struct {
	data converter.DataConverter
	open func() (converter.StorageDriver, error)
}

// decodedAtOnce bounds how many payloads go to a codec in one request.
const decodedAtOnce = 100

// restore does it in place. What it cannot restore is a [*replay.PayloadError].
func (p *payloads) restore(ctx context.Context, h *historypb.History) error {
	codec := p.codec()
	b := batch{codec: codec}
	for _, e := range h.GetEvents() {
		err := replay.Payloads(e, func(one *commonpb.Payload) error {
			if replay.Stored(one) {
				if err := p.retrieve(ctx, one); err != nil {
					return &replay.PayloadError{Event: e.GetEventId(), Reason: "it is kept in the workers' store: " + err.Error() +
						"; replay it where their configuration and store can be read"}
				}
			}
			return b.add(ctx, e.GetEventId(), one)
		})
		if err != nil {
			return err
		}
	}
	return b.flush(ctx)
}

// codec returns what decodes payloads, nil if nothing does.
func (p *payloads) codec() converter.PayloadCodec {
	if c, ok := p.data.(converter.PayloadCodecProvider); ok {
		return c.Codec()
	}
	return nil
}

// retrieve replaces a reference by what it refers to.
func (p *payloads) retrieve(ctx context.Context, one *commonpb.Payload) error {
	driver, err := p.open()
	if err != nil {
		return err
	}
	return Fetch(ctx, driver, one)
}

// Fetch replaces in place a payload that only tells where its bytes are kept, see [replay.Stored], by what is kept there.
func Fetch(ctx context.Context, driver converter.StorageDriver, p *commonpb.Payload) error {
	name, claim, err := reference(p)
	switch {
	case err != nil:
		return err
	case name != driver.Name():
		return fmt.Errorf("its driver is %.60q and not %q", name, driver.Name())
	}
	found, err := driver.Retrieve(converter.StorageDriverRetrieveContext{Context: ctx}, []converter.StorageDriverClaim{claim})
	switch {
	case err != nil:
		return err
	case len(found) != 1:
		return errors.New("the store gave another number of payloads")
	}
	p.Metadata, p.Data, p.ExternalPayloads = found[0].GetMetadata(), found[0].GetData(), nil
	return nil
}

// reference reads what the SDK left in place of a payload (sdk-go internal/extstore); early releases wrote it otherwise.
func reference(p *commonpb.Payload) (driver string, claim converter.StorageDriverClaim, err error) {
	ref := &sdkpb.ExternalStorageReference{}
	if string(p.GetMetadata()[converter.MetadataEncoding]) == converter.MetadataEncodingProtoJSON {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(p.GetData(), ref)
		return ref.GetDriverName(), converter.StorageDriverClaim{ClaimData: ref.GetClaimData()}, err
	}
	var old struct {
		DriverName  string                       `json:"driver_name"`
		DriverClaim converter.StorageDriverClaim `json:"driver_claim"`
	}
	err = json.Unmarshal(p.GetData(), &old)
	return old.DriverName, old.DriverClaim, err
}

// A batch is decoded in one request.
type batch struct {
	codec    converter.PayloadCodec
	event    int64 // of the first
	payloads []*commonpb.Payload
}

func (b *batch) add(ctx context.Context, event int64, one *commonpb.Payload) error {
	if b.codec == nil {
		return nil
	}
	if len(b.payloads) == 0 {
		b.event = event
	}
	if b.payloads = append(b.payloads, one); len(b.payloads) < decodedAtOnce {
		return nil
	}
	return b.flush(ctx)
}

// flush decodes in place.
func (b *batch) flush(ctx context.Context) error {
	if len(b.payloads) == 0 {
		return ctx.Err()
	}
	decoded, err := b.codec.Decode(b.payloads)
	if err == nil && len(decoded) != len(b.payloads) {
		err = errors.New("it gave another number of payloads")
	}
	if err != nil {
		return &replay.PayloadError{Event: b.event, Reason: "the codec does not decode it: " + err.Error() + "; see TEMPORAL_CODEC_ENDPOINT and TEMPORAL_CODEC_AUTH"}
	}
	for i, p := range b.payloads {
		p.Metadata, p.Data = decoded[i].GetMetadata(), decoded[i].GetData()
	}
	b.payloads = b.payloads[:0]
	return ctx.Err()
}
