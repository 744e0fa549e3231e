package store

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// permits counts what a driver asks a limiter for.
type permits[T any] struct{ n atomic.Int64 }

func (p *permits[T]) Permit(_ context.Context, _ T, fn func() error) error {
	p.n.Add(1)
	return fn()
}

func payload(s string) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain"), "a": {0xff}}, Data: []byte(s)}
}

func TestPayloadsComeBackUnderTheSessionsFolder(t *testing.T) {
	t.Parallel()
	s := openURL(t, Config{URL: "mem://"})
	d := s.PayloadDriver()
	if d.Name() != "holdfast" || d.Type() != "holdfast.store" {
		t.Errorf("%q and %q stand in histories", d.Name(), d.Type())
	}
	for target, folder := range map[converter.StorageDriverTargetInfo]string{
		converter.StorageDriverWorkflowInfo{WorkflowID: "chat-1:turn-2"}: "payloads/chat-1/",
		converter.StorageDriverWorkflowInfo{WorkflowID: "chat-1"}:        "payloads/chat-1/",
		converter.StorageDriverWorkflowInfo{WorkflowID: "../x"}:          "payloads/_/",
		converter.StorageDriverActivityInfo{ActivityID: "a"}:             "payloads/_/",
	} {
		in := []*commonpb.Payload{payload(strings.Repeat("x", 1<<20)), payload("y"), payload("y"), {}}
		var stores permits[*commonpb.Payload]
		claims, err := d.Store(converter.StorageDriverStoreContext{Context: context.Background(), Target: target, Limiter: &stores}, in)
		if err != nil || len(claims) != len(in) || int(stores.n.Load()) != len(in) {
			t.Fatalf("%d claims, %d permits, %v", len(claims), stores.n.Load(), err)
		}
		for _, c := range claims {
			if !strings.HasPrefix(c.ClaimData[claimName], folder) {
				t.Errorf("%v is not in %q", c.ClaimData, folder)
			}
		}
		var reads permits[converter.StorageDriverClaim]
		out, err := d.Retrieve(converter.StorageDriverRetrieveContext{Context: context.Background(), Limiter: &reads}, claims)
		if err != nil || int(reads.n.Load()) != len(in) {
			t.Fatalf("%d permits, %v", reads.n.Load(), err)
		}
		for i := range in {
			if !proto.Equal(in[i], out[i]) {
				t.Errorf("payload %d differs", i)
			}
		}
	}
}

func TestAPayloadsClaimReachesNothingElse(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openURL(t, Config{URL: "mem://"})
	body, err := s.Space(scope).PutBody(ctx, []byte("secret"), "")
	if err != nil {
		t.Fatal(err)
	}
	d := string(body.Digest)
	for _, name := range []string{"", identity, scope.String() + "/bodies/" + d, "payloads/../" + scope.String() + "/bodies/" + d, "payloads/" + d, "payloads/s/x"} {
		claim := converter.StorageDriverClaim{ClaimData: map[string]string{claimName: name}}
		if _, err := s.PayloadDriver().Retrieve(converter.StorageDriverRetrieveContext{Context: ctx}, []converter.StorageDriverClaim{claim}); err == nil {
			t.Errorf("%q was read", name)
		}
	}
}

func TestADamagedPayloadIsSaidAndMendedByStoringItAgain(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openURL(t, Config{URL: "mem://"})
	put := func() []converter.StorageDriverClaim {
		claims, err := s.PayloadDriver().Store(converter.StorageDriverStoreContext{Context: ctx}, []*commonpb.Payload{payload("x")})
		if err != nil {
			t.Fatal(err)
		}
		return claims
	}
	get := func(c []converter.StorageDriverClaim) error {
		_, err := s.PayloadDriver().Retrieve(converter.StorageDriverRetrieveContext{Context: ctx}, c)
		return err
	}
	claims := put()
	name := claims[0].ClaimData[claimName]
	for _, bad := range [][]byte{{}, wrap([]byte("another")), []byte("noise")} {
		if err := s.bucket.WriteAll(ctx, name, bad, nil); err != nil {
			t.Fatal(err)
		}
		if err := get(claims); !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %v", bad, err)
		}
		put()
		if err := get(claims); err != nil {
			t.Error(err)
		}
	}
	if err := s.bucket.Delete(ctx, name); err != nil {
		t.Fatal(err)
	}
	if err := get(claims); !errors.Is(err, ErrAbsent) {
		t.Error(err)
	}
}
