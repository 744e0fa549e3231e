package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/activities"
	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/transcript"
)

// A hearing is one reading of all that there is of a session.
type hearing struct {
	src     Source
	space   *store.Space
	log     *transcript.Log
	scope   agent.Scope
	chains  []chain // the session's first
	session agent.SessionView
	turns   []Turn
	gaps    int
}

// cacheBytes lets the transcript be read once, not once for each turn.
const cacheBytes = 1 << 20

func newHearing(ctx context.Context, src Source, s *store.Store) (*hearing, error) {
	r := reader{src, s.PayloadDriver()}
	main, err := r.chain(ctx, src.Session)
	if err != nil {
		return nil, fmt.Errorf("session %s: %w", src.Session, err)
	}
	h := &hearing{
		src: src, scope: agent.NewScope(src.Session, main.runs[0].id), log: transcript.New(s, cacheBytes), chains: []chain{main},
	}
	h.space = s.Space(h.scope)
	if err := h.view(agent.QuerySession, main, &h.session); err != nil {
		return nil, err
	}
	for _, id := range children(main) {
		c, err := r.chain(ctx, id)
		if missing(err) {
			continue // the session has decided to start it, the server has not done so yet
		}
		if err != nil {
			return nil, err
		}
		h.chains = append(h.chains, c)
		t, err := h.turn(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", id, err)
		}
		h.turns = append(h.turns, t)
	}
	inOrder(h.turns)
	since(h.turns, words(main), h.session.Unresolved)
	return h, h.whole(ctx)
}

// view decodes what a workflow's code says of itself at the end of its latest history; nothing if it has not run yet or
// does not replay, which is said elsewhere.
func (h *hearing) view(query string, c chain, out any) error {
	if !c.last().ran {
		return nil
	}
	return c.last().replayed.Query(query, out)
}

// children returns the turns and the late compensations that a session has started, each once.
func children(session chain) (ids []string) {
	seen := map[string]bool{}
	session.events(func(e *historypb.HistoryEvent) {
		if a := e.GetStartChildWorkflowExecutionInitiatedEventAttributes(); a != nil && !seen[a.GetWorkflowId()] {
			seen[a.GetWorkflowId()] = true
			ids = append(ids, a.GetWorkflowId())
		}
	})
	return ids
}

// turn puts together what is known of one turn.
func (h *hearing) turn(ctx context.Context, c chain) (Turn, error) {
	var t Turn
	if _, n, m, ok := agent.ParseUndoID(c.id); ok {
		t.Number, t.Undo = n, m
	} else if _, t.Number, ok = agent.ParseTurnID(c.id); !ok {
		return t, errors.New("it is no turn")
	}
	var in agent.TurnInput
	if err := first(c.runs[0].history.GetEvents()[0].GetWorkflowExecutionStartedEventAttributes().GetInput(), &in); err != nil {
		return t, fmt.Errorf("its input: %w", err)
	}
	head, err := h.standing(c, &t)
	if err != nil {
		return t, err
	}
	if err := h.closing(ctx, &t, &head); err != nil {
		return t, err
	}
	h.answered(c, &t)
	if t.Undo > 0 {
		return t, nil
	}
	return t, h.said(ctx, &t, in.Head, head)
}

// standing reads from its history how a turn stands, and where its transcript ends.
func (h *hearing) standing(c chain, t *Turn) (agent.Head, error) {
	var view agent.TurnView
	var effects agent.EffectsView
	var approvals agent.ApprovalsView
	if err := errors.Join(
		h.view(agent.QueryTurn, c, &view), h.view(agent.QueryEffects, c, &effects), h.view(agent.QueryApprovals, c, &approvals),
	); err != nil {
		return agent.Head{}, err
	}
	t.Status, t.Waiting, t.Replayed, t.Approvals = view.Status, view.Waiting, effects.Effects, approvals.Approvals
	t.Effects = t.Replayed
	if t.Status == "" {
		t.Status = agent.StatusRunning // its code has not run yet
	}
	events := c.last().history.GetEvents()
	if end := events[len(events)-1]; ends(end) {
		res := resultOf(end)
		t.Status, t.Waiting = res.Status, ""
		if t.Mute = !res.Status.Final(); t.Mute {
			t.Status = agent.StatusFailed
		}
		return res.Head, nil
	}
	if t.Status.Final() { // it is about to end
		t.Status = agent.StatusRunning
	}
	return view.Head, nil
}

// ends says whether a workflow has ended with an event, and does not go on in another run.
func ends(e *historypb.HistoryEvent) bool {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED, enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED,
		enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TIMED_OUT:
		return true
	}
	return false
}

// resultOf reads how a turn ended from its last event; one that was ended from outside does not say.
func resultOf(e *historypb.HistoryEvent) (res agent.TurnResult) {
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		_ = first(e.GetWorkflowExecutionCompletedEventAttributes().GetResult(), &res)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		_ = first(detailsOf(e.GetWorkflowExecutionFailedEventAttributes().GetFailure()), &res)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		_ = first(e.GetWorkflowExecutionCanceledEventAttributes().GetDetails(), &res)
	}
	return res
}

func detailsOf(f *failurepb.Failure) *commonpb.Payloads {
	return f.GetApplicationFailureInfo().GetDetails()
}

// closing reads the closing record, the authority on a turn that has ended.
func (h *hearing) closing(ctx context.Context, t *Turn, head *agent.Head) error {
	if !t.Status.Final() {
		return nil
	}
	b, err := h.space.Closing(ctx, store.ClosingName(t.Number, t.Undo))
	switch {
	case errors.Is(err, store.ErrAbsent) || errors.Is(err, store.ErrDamaged):
		return nil // what the history says has to do
	case err != nil:
		return fmt.Errorf("its closing record: %w", err)
	}
	var c activities.Closing
	if err := json.Unmarshal(b, &c); err != nil {
		return fmt.Errorf("its closing record: %w", err)
	}
	t.Closed, t.Effects, t.Approvals = true, c.Ledger, c.Approvals
	if c.Result.Head.Seq > head.Seq {
		*head = c.Result.Head
	}
	return nil
}

// answered reads the answer that the history has of a turn that is done, and counts the gaps that the model was shown.
func (h *hearing) answered(c chain, t *Turn) {
	types := map[int64]string{}
	c.events(func(e *historypb.HistoryEvent) {
		if a := e.GetActivityTaskScheduledEventAttributes(); a != nil {
			types[e.GetEventId()] = a.GetActivityType().GetName()
		}
		a := e.GetActivityTaskCompletedEventAttributes()
		var r agent.ModelResult
		if a == nil || types[a.GetScheduledEventId()] != agent.ActivityModel || first(a.GetResult(), &r) != nil {
			return
		}
		h.gaps += r.Gaps
		t.Answer = agent.DigestOf([]byte(r.Text))
		if r.Body != nil {
			t.Answer = r.Body.Digest
		}
	})
	if t.Status != agent.StatusDone {
		t.Answer = ""
	}
}

// first decodes the first payload.
func first(ps *commonpb.Payloads, out any) error {
	if len(ps.GetPayloads()) == 0 {
		return errors.New("no payload")
	}
	return converter.GetDefaultDataConverter().FromPayload(ps.GetPayloads()[0], out)
}
