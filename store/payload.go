package store

import (
	"context"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-run/holdfast/agent"
)

// payloadDriver stores oversized Temporal payloads in the bucket. Its name stands in histories: it can
// never change.
type payloadDriver struct{ store *Store }

const (
	payloadDriverName = "holdfast"
	payloadDriverType = "holdfast.store"
	payloadFolder     = "payloads/"
	// noSession is the folder of payloads that belong to no session; it is no session id.
	noSession = "_"
	claimName = "object"
)

// PayloadDriver returns the driver through which the Temporal SDK keeps payloads in the store that are too
// large for a history event. They are named by their digest, under "payloads/<session>/", and checked on
// every read. It is safe for concurrent use.
func (s *Store) PayloadDriver() converter.StorageDriver { return payloadDriver{s} }

// Name implements converter.StorageDriver.
func (payloadDriver) Name() string { return payloadDriverName }

// Type implements converter.StorageDriver.
func (payloadDriver) Type() string { return payloadDriverType }

// Store implements converter.StorageDriver.
func (d payloadDriver) Store(ctx converter.StorageDriverStoreContext, payloads []*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	claims := make([]converter.StorageDriverClaim, len(payloads))
	folder := payloadFolder + payloadSession(ctx.Target) + "/"
	g, gctx := errgroup.WithContext(ctx.Context)
	for i, p := range payloads {
		g.Go(func() error {
			return ctx.GetLimiter().Permit(gctx, p, func() error {
				name, err := d.put(gctx, folder, p)
				claims[i] = converter.StorageDriverClaim{ClaimData: map[string]string{claimName: name}}
				return err
			})
		})
	}
	return claims, g.Wait()
}

func (d payloadDriver) put(ctx context.Context, folder string, p *commonpb.Payload) (string, error) {
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
	if err != nil {
		return "", err
	}
	name := folder + string(agent.DigestOf(b))
	created, err := d.store.create(ctx, name, b)
	if err != nil || created {
		return name, err
	}
	if _, err := d.get(ctx, name); err != nil { // what stands there is of no use
		return name, d.store.replace(ctx, name, b)
	}
	return name, nil
}

// Retrieve implements converter.StorageDriver.
func (d payloadDriver) Retrieve(ctx converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	payloads := make([]*commonpb.Payload, len(claims))
	g, gctx := errgroup.WithContext(ctx.Context)
	for i, c := range claims {
		g.Go(func() error {
			return ctx.GetLimiter().Permit(gctx, c, func() (err error) {
				payloads[i], err = d.get(gctx, c.ClaimData[claimName])
				return err
			})
		})
	}
	return payloads, g.Wait()
}

// get reads a payload. The name comes from a history, which a client may have written: it reaches nothing
// but payloads.
func (d payloadDriver) get(ctx context.Context, name string) (*commonpb.Payload, error) {
	rest, ok := strings.CutPrefix(name, payloadFolder)
	session, digest, _ := strings.Cut(rest, "/")
	if !ok || session != noSession && !agent.ValidSessionID(session) || !agent.Digest(digest).Valid() {
		return nil, fmt.Errorf("payload %.100q is not one of this store's driver", name)
	}
	b, err := d.store.read(ctx, name)
	if err != nil {
		return nil, err
	}
	p := &commonpb.Payload{}
	if agent.DigestOf(b) != agent.Digest(digest) || proto.Unmarshal(b, p) != nil {
		return nil, fmt.Errorf("store %q: payload %q: %w", d.store.url, name, ErrDamaged)
	}
	return p, nil
}

// payloadSession returns the session that a payload is stored for. The life is not known here: the SDK
// tells the run, not the first of its chain.
func payloadSession(target converter.StorageDriverTargetInfo) string {
	w, ok := target.(converter.StorageDriverWorkflowInfo)
	if !ok {
		return noSession
	}
	session, _, _ := strings.Cut(w.WorkflowID, ":")
	if !agent.ValidSessionID(session) {
		return noSession
	}
	return session
}
