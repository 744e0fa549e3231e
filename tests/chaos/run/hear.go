package run

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/witness"
)

// source is where the witnesses are heard.
func (r *run) source() witness.Source {
	return witness.Source{
		Client: r.world.Server.Client(), Session: r.world.Session, Turns: turns(r.cell.Scenario),
		Store: r.world.Store(), Books: r.world.Made, Requests: r.world.Requests, Charges: func() int { return r.world.Model.Charges().Answers },
	}
}

// hear collects the story of a run that is over.
func (r *run) hear(ctx context.Context) error {
	var err error
	if r.story, err = witness.Collect(ctx, r.source()); err != nil {
		return err
	}
	for _, e := range r.story.Unresolved {
		if err := r.listed(ctx, e.Key); err != nil {
			return err
		}
	}
	r.story.Shown, r.story.Unlisted, r.story.Calm = r.shown, r.unlisted, !r.changed
	r.story.Stuck = append(r.story.Stuck, r.crashed...)
	r.story.Denied = r.denied
	if !r.has(cell.Kill) { // then the worker that was held goes on with what it had let in
		r.story.Admitted = 1
	}
	if f, ok := r.fault(cell.Word); ok && f.Arg == "late" {
		r.story.Refused = payments[cell.Pay][1].amount
	}
	r.story.Damaged = r.has(cell.Damage)
	return nil
}

// listed notes an open wait that attention does not list. What a run publishes about itself takes a moment to be found.
func (r *run) listed(ctx context.Context, what string) error {
	if !r.looks() {
		return nil
	}
	if !r.looked {
		r.looked = true
		r.driver.looks.Add(1)
	}
	var err error
	for range 5 {
		if err = r.attention(ctx, what); err == nil || rest(ctx, time.Second) != nil {
			return ctx.Err()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unlisted = append(r.unlisted, err.Error())
	return nil
}

// attention says why holdfast attention does not list something of the session, nil if it does.
func (r *run) attention(ctx context.Context, what string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	stdout, stderr, exit, err := r.world.Holdfast(ctx, "attention", "-o", "json")
	if err != nil {
		return err
	}
	var out struct {
		Attention []struct{ Kind, Session, Key string }
	}
	if err := json.Unmarshal([]byte(stdout), &out); err != nil {
		return fmt.Errorf("attention, exit %d: %w: %s", exit, err, stderr)
	}
	for _, m := range out.Attention {
		if m.Session == r.world.Session && (m.Kind == what || m.Key == what) {
			return nil
		}
	}
	return fmt.Errorf("attention does not list %s: %s", what, stdout)
}

// looks says whether a person looks at attention in this cell. It costs half a second of a processor, so not in all.
func (r *run) looks() bool {
	if r.driver.Random {
		return false
	}
	for _, f := range r.cell.Faults {
		if f.Kind == cell.Word || f.Kind == cell.Late || f.Kind == cell.Revoke {
			return true
		}
	}
	return r.cell.Destination == cell.HTTPBlind || r.cell.Destination == cell.MCPBlind
}
