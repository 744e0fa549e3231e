package starter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/deploy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/versioning/replay"
)

// errStored says that a payload was too large for a history and lies where it cannot be read from here.
var errStored = errors.New("it lies in the workers' store, which cannot be read here")

func elsewhere(why error) error {
	if errors.Is(why, errStored) {
		return why
	}
	return fmt.Errorf("%w: %w", errStored, why)
}

// storeHint says what to do about it.
const storeHint = "name the workers' configuration with --config, where their store can be reached"

// storePatience bounds how long the store is waited for. One that took longer is not asked again.
const storePatience = 5 * time.Second

// A stored reads what workers have moved to their store, if that is at hand: the one of the configuration here. It is
// opened for the first payload, and nothing is written. It is safe for concurrent use.
type stored struct {
	converter.StorageDriver // for its name, which stands in histories

	ctx    context.Context // of the command: histories are decoded where there is no other
	open   func(context.Context) (*store.Store, error)
	once   sync.Once
	opened chan struct{}
	wait   time.Duration

	mu  sync.Mutex
	at  *store.Store
	err error // why it is not asked
}

func newStored(ctx context.Context, open func(context.Context) (*store.Store, error)) *stored {
	return &stored{StorageDriver: (*store.Store)(nil).PayloadDriver(), ctx: ctx, open: open, opened: make(chan struct{}), wait: storePatience}
}

// external has a client read what is stored, and store nothing.
func (s *stored) external() converter.ExternalStorage {
	return converter.ExternalStorage{Drivers: []converter.StorageDriver{s}, DriverSelector: keepsInline{}}
}

// keepsInline leaves payloads where they are: only workers move them.
type keepsInline struct{}

// SelectDriver implements converter.StorageDriverSelector.
func (keepsInline) SelectDriver(converter.StorageDriverSelectContext, *commonpb.Payload) (converter.StorageDriver, error) {
	return nil, nil //nolint:nilnil // that is how the SDK is told
}

// Store implements converter.StorageDriver. The SDK never calls it: see [keepsInline].
func (s *stored) Store(converter.StorageDriverStoreContext, []*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	return nil, errors.New("this store is only read")
}

// Retrieve implements converter.StorageDriver. Errors are of the kind [errStored].
func (s *stored) Retrieve(ctx converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	var cancel context.CancelFunc
	ctx.Context, cancel = context.WithTimeout(ctx.Context, s.wait)
	defer cancel()
	at, err := s.here(ctx.Context)
	var out []*commonpb.Payload
	if err == nil {
		out, err = at.PayloadDriver().Retrieve(ctx, claims)
	}
	if err != nil {
		if ctx.Context.Err() != nil { // whoever asks again would wait as long again
			s.settle(at, err)
		}
		return nil, elsewhere(err)
	}
	return out, nil
}

// here returns the store. Opening it goes on when a payload is waited for no longer: a connection may outlive its context.
func (s *stored) here(ctx context.Context) (*store.Store, error) {
	s.once.Do(func() {
		go func() {
			s.settle(s.open(s.ctx))
			close(s.opened)
		}()
	})
	if _, err := s.known(); err != nil {
		return nil, err
	}
	select {
	case <-s.opened:
		return s.known()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *stored) settle(at *store.Store, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at, s.err = at, err
}

func (s *stored) known() (*store.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at, s.err
}

func (s *stored) close() {
	if at, _ := s.known(); at != nil {
		_ = at.Close()
	}
}

// A fetching decodes payloads of histories, which no client has looked through for stored ones.
type fetching struct {
	converter.DataConverter
	stored *stored
}

// Codec implements converter.PayloadCodecProvider: nil if there is none.
func (f fetching) Codec() converter.PayloadCodec {
	if c, ok := f.DataConverter.(converter.PayloadCodecProvider); ok {
		return c.Codec()
	}
	return nil
}

// FromPayload implements converter.DataConverter. It puts a stored payload in the place of what refers to it; the error is
// of the kind [errStored] when it cannot.
func (f fetching) FromPayload(p *commonpb.Payload, v any) error {
	if replay.Stored(p) {
		if err := deploy.Fetch(f.stored.ctx, f.stored, p); err != nil {
			return elsewhere(err)
		}
	}
	return f.DataConverter.FromPayload(p, v)
}

// unread says whether something could not be read because it is stored elsewhere: then waiting for it is in vain.
func unread(err error) error {
	if errors.Is(err, errStored) {
		return withHint(err, "%s", storeHint)
	}
	return nil
}

// Close closes the connection to Temporal and, if it was opened, the store.
func (c *conn) Close() {
	c.Client.Close()
	if c.stored != nil {
		c.stored.close()
	}
}
