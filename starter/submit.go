package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

// A submission is a message on its way to a session, which is started if start says so and it is not there.
type submission struct {
	session, agent, tenant, queue string
	message                       agent.Message
	start                         bool
	fork                          *agent.Fork // the session begins where a turn of another one ended
	again                         int         // the message was accepted, and is sent anew to ask whether this turn took it
}

// A receipt says what became of a submission.
type receipt struct {
	agent.SendResult
	run string // of the session that accepted it
}

// submit hands a message over and returns when the session has it. It waits for as long as that takes; note
// is told after a while why it takes long. Repeating it is safe: the session knows the message by its id.
func (c *conn) submit(ctx context.Context, s submission, note func(string)) (receipt, error) {
	waiting, arrived := context.WithCancel(ctx)
	defer arrived()
	go c.explainWait(waiting, s, note)
	for {
		h, err := c.send(ctx, s)
		var r receipt
		if err == nil {
			r.run = h.RunID()
			err = h.Get(ctx, &r.SendResult) // a refusal comes from here, not from the call
		}
		switch {
		case ctx.Err() != nil && err != nil:
			return r, ctx.Err()
		case err == nil || !again(err):
			return r, s.refused(err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryAtFirst):
		}
	}
}

// took asks the session which turn took a message that it has accepted, once a turn has started that may have; 0 is none
// yet. To send it anew is how it is asked.
func (c *conn) took(ctx context.Context, s submission, started int, note func(string)) (int, error) {
	s.start, s.again = false, started
	r, err := c.submit(ctx, s, note)
	var closed errSessionClosed
	if errors.As(err, &closed) { // there is nobody to ask any more
		err = withHint(fmt.Errorf("which turn took the message cannot be seen: %w", errStored), "%s; what was said: holdfast watch %s", storeHint, s.session)
	}
	return r.Turn, err
}

// again says whether the same submission may succeed later: nobody has taken it yet, or the session went on
// in a new run meanwhile.
func again(err error) bool {
	var late *client.WorkflowUpdateServiceTimeoutOrCanceledError
	var app *temporal.ApplicationError
	return errors.As(err, &late) || isOutage(err) || errors.As(err, &app) && app.Type() == "AcceptedUpdateCompletedWorkflow"
}

func (c *conn) send(ctx context.Context, s submission) (client.WorkflowUpdateHandle, error) {
	update := client.UpdateWorkflowOptions{
		WorkflowID: s.session, UpdateName: agent.UpdateSend, Args: []any{s.message},
		WaitForStage: client.WorkflowUpdateStageCompleted,
		// The server answers a known update id by itself, whatever the payload: another text under the
		// same message id must reach the session, which refuses it.
		UpdateID: s.message.ID + "-" + agent.DigestOf([]byte(s.message.Text)).Short(),
	}
	if s.again != 0 {
		update.UpdateID += fmt.Sprintf("-%d", s.again)
	}
	if !s.start {
		return c.UpdateWorkflow(ctx, update)
	}
	op := c.NewWithStartWorkflowOperation(s.startOptions(), agent.WorkflowSession, s.input())
	return c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: op, UpdateOptions: update})
}

func (s submission) input() agent.SessionInput {
	in := agent.SessionInput{Agent: s.agent, Tenant: s.tenant, Fork: s.fork}
	if s.fork != nil {
		// An empty state of the schema that came with forks: a build that would take it for a new session refuses it.
		in.Checkpoint, _ = versioning.Seal(forkSchema, struct{}{}) // which has a JSON form
	}
	return in
}

// forkSchema is the first schema of a session's state that knows of forks.
const forkSchema = 3

// memoOrigin names the memo that says in lists where a session was forked from. The session's own word is its origin.
const memoOrigin = "HoldfastOrigin"

func (s submission) startOptions() client.StartWorkflowOptions {
	attributes := []temporal.SearchAttributeUpdate{
		temporal.NewSearchAttributeKeyKeyword(agent.AttributeAgent).ValueSet(s.agent),
	}
	if s.tenant != "" {
		attributes = append(attributes, temporal.NewSearchAttributeKeyKeyword(agent.AttributeTenant).ValueSet(s.tenant))
	}
	o := client.StartWorkflowOptions{
		ID: s.session, TaskQueue: s.queue,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		TypedSearchAttributes:    temporal.NewSearchAttributes(attributes...),
		StaticSummary:            "session: agent " + s.agent,
		StaticDetails: "A conversation with the agent `" + s.agent + "`. Each turn is a child workflow, `" +
			agent.TurnID(s.session, 1) + "` and so on. Send it a message with the update `send` or with `holdfast send " + s.session + "`.",
	}
	if f := s.fork; f != nil {
		from := address{session: f.From.Session, turn: f.Turn}.String()
		o.StaticSummary += ", forked from " + from
		o.Memo = map[string]any{memoOrigin: from}
	}
	return o
}

// errSessionClosed says that a session takes no more messages.
type errSessionClosed struct{ session string }

func (e errSessionClosed) Error() string { return fmt.Sprintf("session %q is closed", e.session) }

// errRefused says that a session did not take a message.
type errRefused struct{ session, why string }

func (e errRefused) Error() string {
	return fmt.Sprintf("session %q refused the message: %s", e.session, e.why)
}

// refused names the session in an error and says what to do.
func (s submission) refused(err error) error {
	var (
		started *serviceerror.WorkflowExecutionAlreadyStarted
		app     *temporal.ApplicationError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &started), isNotFound(err) && !s.start:
		return errSessionClosed{s.session}
	case errors.As(err, &app) && app.Type() == agent.ErrClosed:
		return errSessionClosed{s.session}
	case errors.As(err, &app):
		return errRefused{s.session, app.Message()}
	}
	return err
}

// explainWait says once why a message is not taken up.
func (c *conn) explainWait(ctx context.Context, s submission, note func(string)) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(patience):
	}
	why := cmp.Or(c.whyNotTaken(ctx, s), "the worker has not answered yet")
	if ctx.Err() == nil {
		note(why)
		note("waiting until the message is taken; an interrupt does not take it back")
	}
}

// whyNotTaken says why no worker looks at a message: an update leaves no task behind that could be seen to wait.
func (c *conn) whyNotTaken(ctx context.Context, s submission) string {
	d, err := c.describe(ctx, s.session, "")
	if err != nil {
		return c.absence(ctx, s.queue, nil)
	}
	return cmp.Or(c.whyStuck(ctx, d), c.absence(ctx, s.queue, d.GetWorkflowExecutionInfo()))
}

// begin starts a session without a message.
func (c *conn) begin(ctx context.Context, s submission) error {
	o := s.startOptions()
	o.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL
	o.WorkflowExecutionErrorWhenAlreadyStarted = true
	_, err := c.ExecuteWorkflow(ctx, o, agent.WorkflowSession, s.input())
	var started *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &started) {
		return withHint(fmt.Errorf("session id %q is taken: an id is used once", s.session), "choose another, or send to it: holdfast send %s MESSAGE", s.session)
	}
	return err
}
