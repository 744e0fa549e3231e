package starter

import (
	"context"
	"errors"
	"sync"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// Where what is known of a turn comes from.
const (
	sourceTurn    = "turn"           // its own word
	sourceClosing = "closing record" // in the store
	sourceHistory = "history"        // which proves no dispatch
	sourceSession = "session"        // for what a turn left unresolved
)

// A ledger is what is known of the effects and the approvals of one turn, or of one late compensation.
type ledger struct {
	at        address
	running   bool
	source    string
	scope     agent.Scope
	effects   []agent.Effect
	folded    []agent.Count
	approvals []agent.Approval
	refused   []agent.Refusal
	view      *agent.TurnView // of a running turn that answered
	log       *turnLog        // when the history was read
}

// A finder looks for ledgers wherever they are. It is safe for concurrent use.
type finder struct {
	conn  *conn
	store *store.Store // nil: none at hand

	mu     sync.Mutex
	silent map[string]bool     // desks whose workers do not answer: see desk
	polls  map[string]*pollers // by task queue, as far as they were asked for
}

func newFinder(c *conn, s *store.Store) *finder {
	return &finder{conn: c, store: s, silent: map[string]bool{}, polls: map[string]*pollers{}}
}

func (f *finder) close() {
	if f.store != nil {
		_ = f.store.Close()
	}
}

var errSilent = errors.New("no worker answers")

// ask asks a workflow. Where no worker answers once, the next ones are not waited for.
func (f *finder) ask(ctx context.Context, id, desk, query string, to any) error {
	f.mu.Lock()
	silent := f.silent[desk]
	f.mu.Unlock()
	if silent {
		return errSilent
	}
	err := f.conn.ask(ctx, id, query, to)
	var unknown *serviceerror.QueryFailed
	if err != nil && ctx.Err() == nil && !isNotFound(err) && !errors.As(err, &unknown) && !errors.Is(err, errStored) {
		f.mu.Lock()
		f.silent[desk] = true
		f.mu.Unlock()
	}
	return err
}

// ledger finds out about a turn: from itself while it runs; else from its closing record, its closed run or its
// history, whichever is there.
func (f *finder) ledger(ctx context.Context, scope agent.Scope, at address) (*ledger, error) {
	l := &ledger{at: at, scope: scope}
	d, err := f.conn.describe(ctx, at.workflow(), "")
	if err != nil && !isNotFound(err) {
		return nil, err
	}
	info := d.GetWorkflowExecutionInfo()
	l.running = info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
	if !l.running && f.closed(ctx, l) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	if f.answers(ctx, l, desk(d.GetWorkflowExecutionInfo())) {
		return l, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return l, f.history(ctx, l)
}

// closed reads the closing record.
func (f *finder) closed(ctx context.Context, l *ledger) bool {
	if f.store == nil || !l.scope.Valid() {
		return false
	}
	c, err := closingRecord(ctx, f.store, l.scope, l.at)
	if err != nil {
		return false
	}
	l.source, l.effects, l.folded, l.approvals, l.refused = sourceClosing, c.Ledger, c.Folded, c.Approvals, c.Refused
	return true
}

// answers asks the run itself; a closed one answers as well while a worker runs.
func (f *finder) answers(ctx context.Context, l *ledger, desk string) bool {
	var effects agent.EffectsView
	if f.ask(ctx, l.at.workflow(), desk, agent.QueryEffects, &effects) != nil {
		return false
	}
	l.source, l.effects, l.folded, l.refused = sourceTurn, effects.Effects, effects.Folded, effects.Refused
	var approvals agent.ApprovalsView
	if f.ask(ctx, l.at.workflow(), desk, agent.QueryApprovals, &approvals) == nil {
		l.approvals = approvals.Approvals
		l.refused = append(l.refused, approvals.Refused...)
	}
	var v agent.TurnView
	if l.running && f.ask(ctx, l.at.workflow(), desk, agent.QueryTurn, &v) == nil {
		l.view = &v
	}
	return true
}

// deskOf says which workers a run is answered by, "" when it cannot be found out.
func (f *finder) deskOf(ctx context.Context, at address) string {
	d, err := f.conn.describe(ctx, at.workflow(), "")
	if err != nil {
		return ""
	}
	return desk(d.GetWorkflowExecutionInfo())
}

func (f *finder) history(ctx context.Context, l *ledger) error {
	log, err := f.conn.workflowLog(ctx, l.at)
	if err != nil {
		return err
	}
	l.source, l.log, l.effects = sourceHistory, log, log.ledger()
	for _, a := range log.approvals {
		l.approvals = append(l.approvals, *a)
	}
	return nil
}

// ledger returns the effects as far as the history tells them, with the turn's own last word on those that it
// left unresolved.
func (t *turnLog) ledger() []agent.Effect {
	out := make([]agent.Effect, 0, len(t.effects))
	for _, e := range t.effects {
		out = append(out, *e)
	}
	if t.result == nil {
		return out
	}
	for _, last := range t.result.Effects {
		out = replaced(out, last)
	}
	return out
}

// replaced puts an effect in the place of the one with its key, or at the end.
func replaced(effects []agent.Effect, e agent.Effect) []agent.Effect {
	for i := range effects {
		if effects[i].Key == e.Key {
			effects[i] = e
			return effects
		}
	}
	return append(effects, e)
}

// unresolved asks a session what its turns left unresolved.
func (f *finder) unresolved(ctx context.Context, session, desk string) (agent.EffectsView, error) {
	var v agent.EffectsView
	err := f.ask(ctx, session, desk, agent.QueryEffects, &v)
	return v, err
}
