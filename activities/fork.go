package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// A Forked is the record of where a forked session began: the session's own closing record of the name
// [store.ForkName], sealed like the others and written before the first turn. It says for good whose family the session
// belongs to, also where what a turn left behind does not.
type Forked struct {
	Version int `json:"v"`
	agent.Scope
	Agent  string       `json:"agent"`
	Origin agent.Origin `json:"origin"`
	Serial int64        `json:"serial,omitempty"` // of the configuration by which the fork was judged
	Build  string       `json:"build,omitempty"`
}

const forkedVersion = 1

// Fork lets a session begin where a turn of another one ended. It looks whether that may be, by policy, and whether it
// can be, copies the transcript into the new session's part of the store, and writes down where it came from. It may be
// ended anywhere and done again, also by two attempts at once. What no other worker and no later attempt can mend is
// said in an error that is not tried again.
func (a *Activities) Fork(ctx context.Context, in agent.ForkInput) (agent.ForkResult, error) {
	p := begin(ctx, "looking at where the fork begins")
	defer p.stop()
	snap := a.Current()
	if err := a.admit(snap, in.Scope, in.Store, in.Serial); err != nil {
		return agent.ForkResult{}, err
	}
	f := &forking{Activities: a, pulse: p, snap: snap, in: in}
	origin, err := f.run() //nolint:contextcheck // the pulse carries the context of its attempt
	return agent.ForkResult{Origin: origin, Store: a.Store.ID(), Serial: snap.newer(in.Serial)}, err
}

// forking is one attempt to fork a session.
type forking struct {
	*Activities
	*pulse
	snap *Snapshot
	in   agent.ForkInput
}

func (f *forking) run() (agent.Origin, error) {
	done, err := f.forked(f.ctx, f.in.Scope)
	switch {
	case unreadable(err):
		return agent.Origin{}, f.snap.final(agent.ErrStore, "the record of where this session began cannot be read: %v", err)
	case err != nil:
		return agent.Origin{}, f.snap.storeTrouble(f.ctx, "looking for the record of an earlier attempt", err)
	case done != nil:
		return done.Origin, f.admit(f.snap, f.in.Scope, "", done.Serial)
	}
	o := agent.Origin{From: f.in.Fork.From, Turn: f.in.Fork.Turn, Root: f.in.Fork.From}
	if err := f.sensible(); err != nil {
		return o, err
	}
	c, cerr := f.end()
	if cerr == nil { // before it is judged: who was revoked since then is so for the fork, too
		if err := f.admit(f.snap, o.From, c.Result.Store, c.Result.Serial); err != nil {
			return o, err
		}
	}
	if o.By, o.At, err = f.entitled(); err != nil {
		return o, err
	}
	if cerr != nil {
		return o, cerr
	}
	o.Head = c.Result.Head
	if o.Root, err = f.root(c); err != nil {
		return o, err
	}
	if err := f.copy(o.Head); err != nil {
		return o, err
	}
	if err := f.claimOld(o.Root); err != nil {
		return o, err
	}
	return f.record(o)
}

// sensible refuses what is known to lead nowhere before anything is read.
func (f *forking) sensible() error {
	x := f.in.Fork
	switch _, known := f.snap.Agents[f.in.Agent]; {
	case !known:
		return f.snap.noAgent(f.in.Agent)
	case !x.From.Valid():
		return f.snap.final(agent.ErrFork, "the session to fork, %s, is not <session>~<8 hex digits>", quoted(x.From.String()))
	case x.From == f.in.Scope:
		return f.snap.final(agent.ErrFork, "session %q cannot be forked from itself: give the fork another name", x.From.Session)
	case x.Turn < 1:
		return f.snap.final(agent.ErrFork, "there is no turn %d: a session is forked at the end of one of its turns, which count from 1; "+
			"to begin with nothing, start a new session", x.Turn)
	}
	return nil
}

// noAgent is for an agent that the configuration does not have.
func (s *Snapshot) noAgent(name string) error {
	names := slices.Sorted(maps.Keys(s.Agents))
	return s.final(agent.ErrUnknownAgent, "there is no agent %s; the agents are %s", quoted(name), strings.Join(names, ", "))
}

// entitled says who forks, and when the server was told so: what was signed is held against the moment at which the
// session was started, however long it waited for a worker.
func (f *forking) entitled() (by string, at time.Time, err error) {
	info := activity.GetInfo(f.ctx)
	res, err := f.Client.WorkflowService().GetWorkflowExecutionHistory(f.ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: info.Namespace, MaximumPageSize: 1,
		Execution: &commonpb.WorkflowExecution{WorkflowId: info.WorkflowExecution.ID, RunId: info.WorkflowExecution.RunID},
	})
	switch events := res.GetHistory().GetEvents(); {
	case err != nil:
		return "", at, f.snap.retryable(agent.ErrInternal, 0, "reading when the session was started: %v", err)
	case len(events) == 0:
		return "", at, f.snap.retryable(agent.ErrInternal, 0, "the history of the session has no beginning (yet)")
	default:
		at = events[0].GetEventTime().AsTime()
	}
	if by, err = f.snap.Policy.JudgeFork(f.in.Session, f.in.Agent, f.in.Fork, at); err != nil {
		return "", at, f.snap.final(agent.ErrNotEntitled, "the fork does not count: %v", err)
	}
	return by, at, nil
}

// copy takes over what was said up to head.
func (f *forking) copy(head agent.Head) error {
	f.phase("reading the transcript")
	from := f.in.Fork.From
	err := f.Log.Copy(f.ctx, from, f.in.Scope, head, func(done, total int) { f.counted("copying the transcript", done, total) })
	switch {
	case err != nil && f.ctx.Err() != nil:
		return f.ctx.Err()
	case err != nil && definite(err):
		return f.snap.final(agent.ErrStore, "the transcript of %q is not whole up to the end of turn %d: %v; fork it at an earlier turn",
			from.Session, f.in.Fork.Turn, err)
	case err != nil:
		return f.snap.storeTrouble(f.ctx, "copying the transcript", err)
	}
	return nil
}

// counted says how much of something is done.
func (f *forking) counted(what string, done, total int) {
	f.phase(fmt.Sprintf("%s: %d of %d objects", what, done, total))
}

// record writes down where the session began. What another attempt has written counts.
func (f *forking) record(o agent.Origin) (agent.Origin, error) {
	b, err := json.Marshal(Forked{Version: forkedVersion, Scope: f.in.Scope, Agent: f.in.Agent, Origin: o, Serial: f.snap.Serial, Build: f.Build})
	if err != nil {
		return o, f.snap.final(agent.ErrInternal, "the record of the fork has no JSON form: %v", err)
	}
	if _, err := f.Store.Space(f.in.Scope).CreateClosing(f.ctx, store.ForkName, b); err != nil && !unreadable(err) {
		return o, f.snap.storeTrouble(f.ctx, "recording the fork", err)
	}
	standing, err := f.forked(f.ctx, f.in.Scope)
	switch {
	case unreadable(err):
		return o, f.snap.final(agent.ErrStore, "the record of where this session began cannot be read: %v", err)
	case err != nil || standing == nil:
		return o, f.snap.storeTrouble(f.ctx, "reading the record of the fork", errors.Join(err, store.ErrAbsent))
	}
	return standing.Origin, f.admit(f.snap, f.in.Scope, "", standing.Serial)
}

// origin returns where a session was forked from, nil if it was not. Its error is the store's.
func (a *Activities) origin(ctx context.Context, scope agent.Scope) (*agent.Origin, error) {
	r, err := a.forked(ctx, scope)
	if r == nil {
		return nil, err
	}
	return &r.Origin, err
}

// forked returns the record of where a session was forked from, nil if it was not. Its error is the store's.
func (a *Activities) forked(ctx context.Context, scope agent.Scope) (*Forked, error) {
	b, err := a.Store.Space(scope).Closing(ctx, store.ForkName)
	switch {
	case errors.Is(err, store.ErrAbsent):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return parseForked(b, scope)
}

// parseForked reads the record of a fork.
func parseForked(b []byte, scope agent.Scope) (*Forked, error) {
	var r Forked
	err := json.Unmarshal(b, &r)
	switch {
	case err == nil && r.Version > forkedVersion:
		return nil, fmt.Errorf("the record of where %q began is of version %d, which this build does not know: use a newer one", scope, r.Version)
	case err != nil || r.Version < 1 || r.Scope != scope || !whole(r.Origin):
		return nil, fmt.Errorf("the record of where %q began is none: %w", scope, store.ErrDamaged)
	}
	return &r, nil
}

// whole says whether an origin has all that others build on.
func whole(o agent.Origin) bool {
	return o.From.Valid() && o.Root.Valid() && o.Turn >= 1 && headed(o.Head)
}

// headed says whether a head has the form of one.
func headed(h agent.Head) bool {
	return h == agent.Head{} || h.Seq > 0 && h.Hash.Valid()
}
