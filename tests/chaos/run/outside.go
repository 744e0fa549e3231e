package run

import (
	"context"
	"fmt"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// disturb does what goes wrong beside the boundaries, but for the model's storms, which are part of its script.
func (r *run) disturb(ctx context.Context) error {
	for _, f := range r.cell.Faults {
		if f.At != "" {
			continue
		}
		err := r.world.Disturb(f)
		if f.Kind == cell.Late {
			err = r.settle(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", f.Kind, f.Arg, err)
		}
	}
	return nil
}

// settle tells the turn and the session again and again that effects are settled that are not, or not theirs. A signal
// names only a key, so it forges nothing.
func (r *run) settle(ctx context.Context) error {
	for {
		made, err := r.world.Made()
		if err != nil {
			return err
		}
		keys := []string{"somebody-else~00000000:turn-1/1.1/0123456789abcdef"}
		for _, e := range made {
			keys = append(keys, e.Key)
		}
		for _, key := range keys {
			for _, turn := range []int{1, 0} {
				_ = r.world.Signal(ctx, turn, agent.SignalSettle, agent.Settlement{Key: key}) // refused by a turn that is not there
			}
		}
		if rest(ctx, 300*time.Millisecond) != nil {
			return nil
		}
	}
}
