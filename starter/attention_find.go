package starter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
)

// openRuns finds every session and turn that has not ended. That one is stuck is in no search attribute.
const openRuns = "ExecutionStatus = 'Running' AND (WorkflowType = '" + agent.WorkflowTurn + "' OR WorkflowType = '" + agent.WorkflowSession + "')"

// looksAtOnce bounds how many runs are looked at in parallel.
const looksAtOnce = 16

// An unseenError reports runs that could not be looked at, whatever they may need.
type unseenError struct {
	runs  int
	first address
	err   error // the first one's
}

func (e *unseenError) Error() string {
	return fmt.Sprintf("%s could not be looked at and may need somebody, first %s: %v", count(e.runs, "open run"), e.first, e.err)
}

func (e *unseenError) Unwrap() error { return e.err }

// attention looks at every open run. A run that ends meanwhile needs nobody any more, and one that cannot be looked at
// hides no other: what was found stands beside an [*unseenError].
func (f *finder) attention(ctx context.Context) ([]matter, error) {
	var runs []address
	err := f.conn.list(ctx, openRuns, func(info *workflowpb.WorkflowExecutionInfo) bool {
		if at, ok := addressOf(info); ok {
			runs = append(runs, at)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	var (
		mu     sync.Mutex
		found  []matter
		unseen unseenError
	)
	all, within := errgroup.WithContext(ctx)
	all.SetLimit(looksAtOnce)
	for _, at := range runs {
		all.Go(func() error {
			here, err := f.matters(within, at)
			mu.Lock()
			defer mu.Unlock()
			found = append(found, here...)
			switch {
			case err == nil || isNotFound(err):
				return nil
			case within.Err() != nil || isOutage(err):
				return err
			}
			if unseen.runs++; unseen.runs == 1 {
				unseen.first, unseen.err = at, err
			}
			return nil
		})
	}
	if err = all.Wait(); err == nil && unseen.runs > 0 {
		err = &unseen
	}
	return distinct(found), err
}

// addressOf is what a run is to us. A workflow type says little in a namespace that others use as well: a session has
// no turn's id, and a turn no session's.
func addressOf(info *workflowpb.WorkflowExecutionInfo) (address, bool) {
	at, err := parseAddress(info.GetExecution().GetWorkflowId())
	return at, err == nil && (at.turn == 0) == (info.GetType().GetName() == agent.WorkflowSession)
}

// distinct drops what two runs say of the same effect.
func distinct(found []matter) []matter {
	seen := map[string]bool{}
	return slices.DeleteFunc(found, func(m matter) bool {
		id := m.Kind + " " + m.Key
		again := m.Key != "" && m.Approval == "" && seen[id]
		seen[id] = true
		return again
	})
}

// silence returns the desks whose workers did not answer.
func (f *finder) silence() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for desk := range f.silent {
		out = append(out, desk)
	}
	slices.Sort(out)
	return out
}

// matters looks at one run: first whether it can go on, then at what it says of itself.
func (f *finder) matters(ctx context.Context, at address) ([]matter, error) {
	d, err := f.conn.describe(ctx, at.workflow(), "")
	if err != nil {
		return nil, err
	}
	var out []matter
	stuck := stuckAt(d)
	if stuck > 0 {
		out = append(out, f.stuck(ctx, at, d, stuck))
	} else if m, ok := f.held(ctx, at, d); ok {
		out = append(out, m)
	} else {
		out = append(out, f.failing(ctx, at, d)...)
	}
	if !f.conn.wantsSomebody(d.GetWorkflowExecutionInfo()) {
		return out, nil
	}
	var here []matter
	if at.turn == 0 {
		here, err = f.ofSession(ctx, at, d, stuck > 0)
	} else {
		here, err = f.ofTurn(ctx, at, d, stuck > 0)
	}
	if err == nil && len(here) == 0 && stuck == 0 {
		here = f.conn.unnamed(at, d.GetWorkflowExecutionInfo())
	}
	return append(out, here...), err
}

// wantsSomebody says whether a run's search attributes ask for a person.
func (c *conn) wantsSomebody(info *workflowpb.WorkflowExecutionInfo) bool {
	return c.attribute(info, agent.AttributeAttention) != "" || c.number(info, agent.AttributeApprovals) > 0 ||
		c.number(info, agent.AttributeUncertain) > 0 || c.attribute(info, agent.AttributeStatus) == string(agent.StatusWaiting)
}

// ofTurn lists what a turn waits for.
func (f *finder) ofTurn(ctx context.Context, at address, d *workflowservice.DescribeWorkflowExecutionResponse, stuck bool) ([]matter, error) {
	l := &ledger{at: at, running: true}
	if stuck || !f.answers(ctx, l, desk(d.GetWorkflowExecutionInfo())) {
		if err := f.history(ctx, l); err != nil {
			return nil, err
		}
	}
	out := l.matters()
	b := matter{
		Kind: matterBudget, Session: at.session, Turn: at.turn, Workflow: at.workflow(),
		What: "the budget is used up", Command: extendCommand(at.session, ""),
	}
	switch {
	case l.view != nil && !l.view.Deadline.IsZero():
		b.What, b.Expires = l.view.Waiting, l.view.Deadline
		b.Command = extendCommand(at.session, b.What)
		out = append(out, b)
	case l.log != nil && l.log.waiting && (l.log.attention == agent.AttentionBudget || l.log.attention == "" && len(out) == 0):
		out = append(out, b)
	}
	return out, nil
}

// matters lists what a ledger wants a person for.
func (l *ledger) matters() []matter {
	var out []matter
	for _, a := range l.approvals {
		if a.Outcome != agent.OutcomePending {
			continue
		}
		out = append(out, matter{
			Kind: matterApproval, Session: l.at.session, Turn: l.at.turn, Workflow: l.at.workflow(), Approval: a.ID, Key: a.Key,
			Tool: a.Tool, What: actionText(a.Tool, a.Args), Since: a.RequestedAt, Expires: a.ExpiresAt, Command: approveCommand(a.ID),
		})
	}
	for _, e := range l.effects {
		if m, ok := matterOf(l.at, e); ok {
			out = append(out, m)
		}
	}
	return out
}

// matterOf says what an effect needs a person for, if it does.
func matterOf(at address, e agent.Effect) (matter, bool) {
	if !effect.Unresolved(e) {
		return matter{}, false
	}
	m := matter{
		Session: at.session, Turn: cmp.Or(e.Place.Turn, at.turn), Workflow: at.workflow(), Key: e.Key, Tool: e.Tool,
		What: cmp.Or(e.Summary, e.Tool), Why: e.Note, Since: e.At,
	}
	switch {
	case e.State == agent.StateUncertain:
		m.Kind, m.Command = matterUncertain, settleCommand(e.Key)
	case e.Conflict != "":
		m.Kind, m.Why, m.Command = matterConflict, e.Conflict, settleCommand(e.Key)
	case e.State == agent.StateIrreversible:
		m.Kind, m.Why, m.Command = matterCompensation, "nothing undoes it, and the turn did not end well", settleCommand(e.Key)
	default:
		m.Kind = matterCompensation
		m.Command = fmt.Sprintf("holdfast compensate %s %s", address{session: at.session, turn: m.Turn}, quoted(e.Key))
	}
	return m, true
}

// sessionTurns is how many ended turns of a session are looked through when the session does not answer.
const sessionTurns = 20

// ofSession lists what ended turns have left to a person.
func (f *finder) ofSession(ctx context.Context, at address, d *workflowservice.DescribeWorkflowExecutionResponse, stuck bool) ([]matter, error) {
	var effects []agent.Effect
	v, err := agent.EffectsView{}, errSilent
	if !stuck {
		v, err = f.unresolved(ctx, at.session, desk(d.GetWorkflowExecutionInfo()))
	}
	effects = v.Effects
	if err != nil && ctx.Err() == nil {
		var all foundEffects
		if all, err = f.session(ctx, at.session, sessionTurns); err != nil {
			return nil, err
		}
		for _, e := range all.Effects {
			effects = append(effects, e.Effect)
		}
	}
	var out []matter
	for _, e := range effects {
		if m, ok := matterOf(at, e); ok {
			out = append(out, m)
		}
	}
	return out, err
}

// unnamed says of a run what its search attributes say, when nothing else does.
func (c *conn) unnamed(at address, info *workflowpb.WorkflowExecutionInfo) []matter {
	m := matter{
		Kind: c.attribute(info, agent.AttributeAttention), Session: at.session, Turn: at.turn, Workflow: at.workflow(),
		What: "it says that it needs somebody, and not for what", Command: "holdfast effects " + at.String(),
	}
	switch m.Kind {
	case "":
		return nil
	case matterApproval:
		m.Command = "holdfast approvals --session " + at.session
	case matterBudget:
		m.Command = extendCommand(at.session, "")
	}
	return []matter{m}
}
