package activities

import (
	"encoding/json"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// end returns the closing record of the turn that the fork begins with, which only a turn has that has ended.
func (f *forking) end() (Closing, error) {
	x := f.in.Fork
	b, err := f.Store.Space(x.From).Closing(f.ctx, store.ClosingName(x.Turn, 0))
	switch {
	case errors.Is(err, store.ErrAbsent):
		return Closing{}, f.unended()
	case unreadable(err):
		return Closing{}, f.damaged(err)
	case err != nil:
		return Closing{}, f.snap.storeTrouble(f.ctx, "reading the closing record of the turn", err)
	}
	c, err := parseClosing(b, x.From, x.Turn)
	switch {
	case unreadable(err):
		return c, f.damaged(err)
	case err != nil:
		return c, f.snap.retryable(agent.ErrStore, 0, "%v", err)
	}
	return c, nil
}

// parseClosing reads the closing record of a session's turn as a place to begin at. An error that is not
// [store.ErrDamaged] is for a record that a newer build can read.
func parseClosing(b []byte, scope agent.Scope, turn int) (Closing, error) {
	var c Closing
	err := json.Unmarshal(b, &c)
	switch {
	case err == nil && c.Version > closingVersion:
		return c, fmt.Errorf("the closing record of turn %d of %q is of version %d, which this build does not know: use a newer one",
			turn, scope, c.Version)
	case err != nil || c.Version < 1 || c.Scope != scope || c.Turn != turn || c.Undo != 0,
		!c.Result.Status.Final() || !headed(c.Result.Head) || c.Origin != nil && !whole(*c.Origin):
		return Closing{}, fmt.Errorf("the closing record of turn %d of %q is none: %w", turn, scope, store.ErrDamaged)
	}
	return c, nil
}

// root returns where the intents of the source's family are claimed: in the source's own part of the store, unless it is
// a fork itself. The record of a turn of before there were forks does not say so, and need not; that of a fork's turn
// may not say so either, where an older build wrote it. Then the fork's own record does.
func (f *forking) root(c Closing) (agent.Scope, error) {
	if c.Origin != nil {
		return c.Origin.Root, nil
	}
	o, err := f.origin(f.ctx, c.Scope)
	switch {
	case unreadable(err):
		return c.Scope, f.snap.final(agent.ErrStore, "whether session %q is a fork itself cannot be read, and then nobody knows what must not be "+
			"repeated: %v", c.Session, err)
	case err != nil:
		return c.Scope, f.snap.storeTrouble(f.ctx, "looking for where the source began", err)
	case o != nil:
		return o.Root, nil
	}
	return c.Scope, nil
}

func (f *forking) damaged(err error) error {
	return f.snap.final(agent.ErrStore, "the closing record of turn %d of session %q cannot be read, so nobody knows where it ended: %v; "+
		"fork it at another turn", f.in.Fork.Turn, f.in.Fork.From.Session, err)
}

// unended says why a turn has no closing record, as far as the server knows.
func (f *forking) unended() error {
	x := f.in.Fork
	id := agent.TurnID(x.From.Session, x.Turn)
	d, err := f.Client.DescribeWorkflow(f.ctx, id, "")
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return f.snap.final(agent.ErrFork, "there is no turn %d of session %q: neither the server nor this worker's store knows it%s; look at "+
			"the session's turns, and fork it at one of those", x.Turn, x.From.Session, f.numbering())
	case err != nil:
		return f.snap.retryable(agent.ErrInternal, 0, "asking the server about turn %q: %v", id, err)
	case d.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return f.snap.final(agent.ErrFork, "turn %d of session %q has not ended: wait for its end, or cancel it, and fork then; or fork at the "+
			"turn before", x.Turn, x.From.Session)
	}
	var res agent.TurnResult
	if err := f.Client.GetWorkflow(f.ctx, id, "").Get(f.ctx, &res); err != nil {
		res, _ = agent.ResultIn(err)
	}
	if err := f.admit(f.snap, x.From, res.Store, 0); err != nil {
		return err
	}
	return f.snap.final(agent.ErrFork, "turn %d of session %q has ended and left no closing record in this worker's store: if it was "+
		"terminated a moment ago, fork again in a minute; else fork at another turn", x.Turn, x.From.Session)
}

// numbering reminds of how the turns of a fork are counted, if the source is one.
func (f *forking) numbering() string {
	o, err := f.origin(f.ctx, f.in.Fork.From)
	if err != nil || o == nil {
		return ""
	}
	return fmt.Sprintf(" (it is a fork, whose turns count from 1 again; what was before is turn %d of session %q and those before)",
		o.Turn, o.From.Session)
}
