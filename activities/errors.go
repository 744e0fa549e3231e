package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-run/holdfast/agent"
)

// maxError bounds the text of an error in bytes: the server keeps an attempt's failure at 4 KiB, and a
// failure's text is not moved to the store like a payload.
const maxError = 2 << 10

// retryable returns an error after which Temporal tries again, after delay if it is not 0.
func (s *Snapshot) retryable(kind string, delay time.Duration, format string, args ...any) error {
	return temporal.NewApplicationErrorWithOptions(s.say(format, args...), kind,
		temporal.ApplicationErrorOptions{NextRetryDelay: delay})
}

// final returns an error after which nobody tries again.
func (s *Snapshot) final(kind, format string, args ...any) error {
	return temporal.NewApplicationErrorWithOptions(s.say(format, args...), kind,
		temporal.ApplicationErrorOptions{NonRetryable: true})
}

// storeTrouble wraps what the store said. An activity's own end is no trouble of the store.
func (s *Snapshot) storeTrouble(ctx context.Context, doing string, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return ctx.Err()
	}
	return s.retryable(agent.ErrStore, 0, "%s: %v", doing, err)
}

// say is the only way out for a text that may quote something foreign: masked, then bounded. In the
// other order a cut could leave half a secret that the mask does not know.
func (s *Snapshot) say(format string, args ...any) string {
	return cut(s.Mask.String(fmt.Sprintf(format, args...)), maxError)
}

// admit refuses work that this worker must not do; another one may take it.
func (a *Activities) admit(s *Snapshot, scope agent.Scope, storeID string, serial int64) error {
	if !scope.Valid() {
		return s.final(agent.ErrInternal, "scope %q is not one", scope.String())
	}
	if s.Serial < serial {
		return s.retryable(agent.ErrStaleConfig, 0,
			"this worker's configuration has serial %d and the turn has seen %d; give the worker the newer holdfast.yaml, or its own one that serial", s.Serial, serial)
	}
	if storeID != "" && storeID != a.Store.ID() {
		return s.retryable(agent.ErrWrongStore, 0,
			"this worker's store is %q and the session's is %q; give the worker the session's store", a.Store.ID(), storeID)
	}
	return nil
}
