package starter

import (
	"context"
	"errors"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/store"
)

// reference is what the SDK leaves in place of a stored payload.
func reference(driver, object string) *commonpb.Payload {
	return &commonpb.Payload{
		Metadata: map[string][]byte{"encoding": []byte("json/protobuf"), "messageType": []byte("temporal.api.sdk.v1.ExternalStorageReference")},
		Data:     []byte(`{"driverName":"` + driver + `","claimData":{"object":"` + object + `"}}`),
	}
}

// storing keeps a value in a store of its own and returns what refers to it.
func storing(t *testing.T, v any) (*store.Store, *commonpb.Payload) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Config{URL: "file://" + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := converter.GetDefaultDataConverter().ToPayload(v)
	if err != nil {
		t.Fatal(err)
	}
	claims, err := s.PayloadDriver().Store(converter.StorageDriverStoreContext{Context: t.Context()}, []*commonpb.Payload{p})
	if err != nil {
		t.Fatal(err)
	}
	return s, reference("holdfast", claims[0].ClaimData["object"])
}

func TestAStoredPayloadIsDecodedWhereTheStoreIsAtHand(t *testing.T) {
	t.Parallel()
	s, p := storing(t, "kept")
	plain := converter.GetDefaultDataConverter()
	opened := 0
	at := newStored(t.Context(), func(context.Context) (*store.Store, error) { opened++; return s, nil })
	d := decoder{fetching{plain, at}}
	var got string
	if err := d.payload(p, &got); err != nil || got != "kept" {
		t.Errorf("%q, %v", got, err)
	}
	_, again := storing(t, "elsewhere")
	for name, p := range map[string]*commonpb.Payload{
		"another store's": again, "another driver's": reference("s3", "x"), "no name": reference("holdfast", ""),
		"no reference": {Metadata: again.GetMetadata(), Data: []byte("{")},
	} {
		if err := d.payload(p, &got); !errors.Is(err, errStored) || shown(err) != "(stored)" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if opened != 1 {
		t.Errorf("the store was opened %d times", opened)
	}
	if err := (decoder{plain}).payload(reference("holdfast", "x"), &got); !errors.Is(err, errStored) {
		t.Errorf("without a store: %v", err)
	}
}

// A store that does not answer holds up one payload for a while, and none after it.
func TestAStoreThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	s, p := storing(t, "kept")
	answers := make(chan struct{})
	at := newStored(t.Context(), func(context.Context) (*store.Store, error) { <-answers; return s, nil })
	at.wait = time.Millisecond
	d := decoder{fetching{converter.GetDefaultDataConverter(), at}}
	var got string
	if err := d.payload(p, &got); !errors.Is(err, errStored) {
		t.Fatalf("it has read %q, %v", got, err)
	}
	at.wait = time.Hour
	if err := d.payload(p, &got); !errors.Is(err, errStored) {
		t.Fatalf("it has read %q, %v", got, err)
	}
	close(answers)
	<-at.opened
	if err := d.payload(p, &got); err != nil || got != "kept" {
		t.Errorf("once it answers: %q, %v", got, err)
	}
}
