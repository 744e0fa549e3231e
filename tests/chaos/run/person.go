package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// person is the one of the scenario: in Pay it approves what waits, in the way of the cell's Word; in Undo it cancels the
// turn.
func (r *run) person(ctx context.Context) error {
	var scope agent.Scope
	var asked agent.Approval
	find := r.pending
	if f, ok := r.fault(cell.Word); ok && f.Arg == "early" {
		find = r.foreseen
	}
	err := insist(ctx, func(ctx context.Context) (err error) {
		scope, asked, err = find(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("nothing waits for the person: %w", err)
	}
	if asked.Outcome == "" { // the request is not open yet
		return r.word(ctx, scope, asked)
	}
	if err := r.listed(ctx, agent.AttentionApproval); err != nil {
		return err
	}
	if r.cell.Scenario == cell.Undo {
		return r.tell(ctx, 0, agent.SignalCancel, agent.Cancel{Turn: 1, Reason: "the wrong customer"})
	}
	return r.word(ctx, scope, asked)
}

// pending returns what waits in the first turn.
func (r *run) pending(ctx context.Context) (agent.Scope, agent.Approval, error) {
	var v agent.ApprovalsView
	q, err := r.world.Server.Client().QueryWorkflow(ctx, agent.TurnID(r.world.Session, 1), "", agent.QueryApprovals)
	if err == nil {
		err = q.Get(&v)
	}
	if err != nil {
		return agent.Scope{}, agent.Approval{}, err
	}
	for _, a := range v.Approvals {
		if a.Outcome == agent.OutcomePending {
			return v.Scope, a, nil
		}
	}
	return agent.Scope{}, agent.Approval{}, errors.New("no request is open")
}

// foreseen returns the request that will be opened when the turn hears of the model's third answer, from the record of
// that answer.
func (r *run) foreseen(ctx context.Context) (scope agent.Scope, asked agent.Approval, err error) {
	d, err := r.world.Server.Client().DescribeWorkflow(ctx, r.world.Session, "")
	if err != nil {
		return scope, asked, err
	}
	scope = agent.NewScope(r.world.Session, d.RawResponse.GetWorkflowExecutionInfo().GetFirstRunId())
	s, err := store.Open(ctx, store.Config{URL: "file://" + r.world.Store()})
	if err != nil {
		return scope, asked, err
	}
	defer s.Close()
	keys, err := s.Space(scope).List(ctx, store.KindResults, "")
	for _, key := range keys {
		if !strings.Contains(key, "/3.model/") {
			continue
		}
		rec, err := s.Space(scope).Result(ctx, key)
		if err != nil {
			return scope, asked, err
		}
		in := agent.ToolInput{Scope: scope, Place: agent.Place{Turn: 1, Step: 3, Call: 1}, Action: rec.Model.Result.Calls[0].Action}
		asked.ID, asked.Action = agent.ApprovalID(in.Key(), 1), in.Action
		return scope, asked, nil
	}
	return scope, asked, errors.Join(err, errors.New("the model has not asked for it yet"))
}

// word approves what waits.
func (r *run) word(ctx context.Context, scope agent.Scope, asked agent.Approval) error {
	said, err := r.world.Decision(scope, asked, agent.ChoiceApprove)
	if err != nil {
		return err
	}
	f, _ := r.fault(cell.Word)
	times := 1
	switch f.Arg {
	case "duplicate":
		times = 3
	case "delayed":
		err = rest(ctx, 4*time.Second)
	case "late":
		err = rest(ctx, time.Until(asked.ExpiresAt)+time.Second)
	case "wrong":
		err = r.forgeries(ctx, said, 1)
	case "crowd":
		err = r.forgeries(ctx, said, 40)
	}
	for range times {
		if err == nil {
			err = r.tell(ctx, 1, agent.SignalApproval, said)
		}
	}
	if err != nil || !r.has(cell.Revoke) {
		return err
	}
	return r.withdraw(ctx, scope)
}

// withdraw declines what still waits a while after it was approved: policy has come to deny it, and the person was told.
func (r *run) withdraw(ctx context.Context, scope agent.Scope) error {
	if err := rest(ctx, 4*time.Second); err != nil {
		return err
	}
	_, asked, err := r.pending(ctx)
	if err != nil {
		return nil // it was taken
	}
	said, err := r.world.Decision(scope, asked, agent.ChoiceDecline)
	if err != nil {
		return err
	}
	return r.tell(ctx, 1, agent.SignalApproval, said)
}

// forgeries are decisions that must not count: of another action, by somebody else, changed after it was signed.
func (r *run) forgeries(ctx context.Context, said agent.ApprovalDecision, n int) error {
	for i := range n {
		d := said
		switch i % 3 {
		case 0:
			d.Digest = agent.DigestOf([]byte("another action"))
		case 1:
			d.Approver = "mallory"
		case 2:
			d.Choice = agent.ChoiceDecline
		}
		d.Ref = fmt.Sprintf("forgery-%d", i)
		if err := r.tell(ctx, 1, agent.SignalApproval, d); err != nil {
			return err
		}
	}
	return nil
}

// tell sends a signal to a turn, or to the session for 0, until the server has it. It may then be there twice.
func (r *run) tell(ctx context.Context, turn int, name string, v any) error {
	return insist(ctx, func(ctx context.Context) error {
		err := r.world.Signal(ctx, turn, name, v)
		if err != nil && strings.Contains(err.Error(), "already completed") {
			return nil // it came too late, which is for the witnesses to say
		}
		return err
	})
}
