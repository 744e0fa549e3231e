package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// A decisionWord is what became of a decision, as -o json prints it.
type decisionWord struct {
	ID       string       `json:"id"`
	Workflow string       `json:"workflow"`
	Decision agent.Choice `json:"decision"`
	Approver string       `json:"approver"`
	Ref      string       `json:"ref"` // by which the turn's record names it
	Result   string       `json:"result"`
	Why      string       `json:"why,omitempty"`     // it does not count
	Claimed  bool         `json:"claimed,omitempty"` // no signature proves the approver
	// Outcome is where the request stands now; Approvals and Quorum say how many have approved of how many.
	Outcome   agent.Outcome `json:"outcome,omitempty"`
	Approvals int           `json:"approvals,omitempty"`
	Quorum    int           `json:"quorum,omitempty"`
	// Successor is the request that took this one's place when the arguments were edited; then those are its.
	Successor string `json:"successor,omitempty"`
	full      bool   // the turn's list of refusals: a further one is counted and its reason lost
}

// The results of a decision.
const (
	wordAccepted   = "accepted"
	wordRefused    = "refused"
	wordUnanswered = "unanswered"
)

// send sends the decision and waits for the turn's word on it.
func (o *decideOptions) send(ctx context.Context, c *conn, f *foundApproval, d agent.ApprovalDecision) error {
	if f.unseen {
		if err := c.sameLife(ctx, f.scope); err != nil {
			return err
		}
	}
	err := c.SignalWorkflow(ctx, f.workflow, "", agent.SignalApproval, d)
	if isNotFound(err) {
		return &exitError{ExitRefused, errors.New("the turn has ended; nothing waits in it any more")}
	}
	if err != nil {
		return err
	}
	w := decisionWord{
		ID: d.ID, Workflow: f.workflow, Decision: d.Choice, Approver: d.Approver, Ref: d.Ref,
		Result: wordUnanswered,
	}
	limit, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	go o.explainSilence(limit, c, f.workflow)
	err = c.await(limit, &w)
	cancel()
	switch {
	case ctx.Err() != nil:
		o.app.leave("the decision was sent and may count; see what became of it: holdfast approvals show '%s'", d.ID)
		return ctx.Err()
	case errors.Is(err, errStored):
		return &exitError{ExitWaiting, fmt.Errorf("the decision was sent and may count; the turn's word on it cannot be read: %w", err)}
	case err != nil && !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return o.report(w)
}

// sameLife makes sure that an id that nobody has confirmed is of the session as it is now.
func (c *conn) sameLife(ctx context.Context, s agent.Scope) error {
	info, err := c.describeSession(ctx, s.Session)
	if err == nil && agent.NewScope(s.Session, firstRunOf(info)) != s {
		err = &exitError{ExitRefused, fmt.Errorf("the id is of an earlier session that had the id %q; nothing was sent", s.Session)}
	}
	return err
}

// await asks the turn until it says something about the decision, or ctx ends.
func (c *conn) await(ctx context.Context, w *decisionWord) error {
	return poll(ctx, func() (bool, error) {
		ended := c.hasEnded(ctx, w.Workflow) // asked before, so that the answer after it is the last
		var v agent.ApprovalsView
		if err := c.ask(ctx, w.Workflow, agent.QueryApprovals, &v); err != nil {
			return false, unread(err) // it may answer later
		}
		switch {
		case w.hear(v):
		case ended:
			w.Result, w.Why = wordRefused, "the turn ended before it looked at the decision"
		default:
			return false, nil
		}
		return true, nil
	})
}

func (c *conn) hasEnded(ctx context.Context, workflow string) bool {
	d, err := c.describe(ctx, workflow, "")
	return err == nil && d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// hear looks for the turn's word on the decision in what it says.
func (w *decisionWord) hear(v agent.ApprovalsView) bool {
	w.full = v.More > 0
	for _, x := range v.Refused {
		if x.Ref == w.Ref {
			w.Result, w.Why = wordRefused, x.Why
		}
	}
	for _, a := range v.Approvals {
		i := slices.IndexFunc(a.Decisions, func(d agent.Decided) bool { return d.Ref == w.Ref })
		if i < 0 {
			continue
		}
		if a.ID != w.ID { // its arguments were edited: the decision is the first approval of another action
			w.Successor = a.ID
		}
		w.Result, w.Claimed = wordAccepted, a.Decisions[i].Claimed
		w.Outcome, w.Approvals, w.Quorum = a.Outcome, approvals(&a), max(a.Terms.Quorum, 1)
	}
	return w.Result != wordUnanswered
}

// explainSilence says once why the turn's word takes long.
func (o *decideOptions) explainSilence(ctx context.Context, c *conn, workflow string) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(patience):
	}
	why := c.absenceAt(ctx, workflow, o.app)
	if why == "" {
		why = "the turn has not answered yet"
	}
	if ctx.Err() == nil {
		o.app.note("%s %s", o.app.paint(o.app.Err, yellow, "note:"), why)
		o.app.note("the decision was sent; waiting for the turn's word on it")
	}
}

// report says what became of the decision and returns it as the command's end.
func (o *decideOptions) report(w decisionWord) error {
	a := o.app
	if a.json() {
		if err := a.printJSON(w); err != nil {
			return err
		}
		switch w.Result {
		case wordRefused:
			return &exitError{code: ExitRefused}
		case wordUnanswered:
			return &exitError{code: ExitWaiting}
		}
		return nil
	}
	switch w.Result {
	case wordRefused:
		return &exitError{ExitRefused, fmt.Errorf("refused: %s", line(w.Why, 2000))}
	case wordUnanswered:
		hint := fmt.Sprintf("see what became of it: holdfast approvals show '%s'", w.ID)
		if w.full {
			hint += "; the turn has refused so many decisions that it only counts them, and this may be one"
		}
		return withHint(&exitError{ExitWaiting, fmt.Errorf("no word from the turn within %s; the decision was sent and may count", o.wait)}, "%s", hint)
	}
	_, err := fmt.Fprintf(a.Out, "accepted: %s\n", w.text())
	return err
}

// text says what an accepted decision has done.
func (w *decisionWord) text() string {
	by := agent.Who(line(w.Approver, 64), w.Claimed)
	switch w.Decision {
	case agent.ChoiceDecline:
		return "declined by " + by + "; the model is told"
	case agent.ChoiceCancel:
		return "withdrawn by " + by
	}
	if w.Successor != "" {
		by += " with other arguments, as " + line(w.Successor, agent.MaxKey)
	}
	if w.Outcome == agent.OutcomePending {
		return fmt.Sprintf("approved by %s: %d of %d; %s needed", by, w.Approvals, w.Quorum, more(w.Quorum-w.Approvals))
	}
	return "approved by " + by + "; the action goes ahead if policy still allows it"
}

func more(n int) string {
	if n == 1 {
		return "1 more is"
	}
	return fmt.Sprintf("%d more are", max(n, 1))
}
