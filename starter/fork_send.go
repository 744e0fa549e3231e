package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// submission finds out what the new session takes over from the one that is forked.
func (o *forkOptions) submission(ctx context.Context, c *conn) (submission, error) {
	s := submission{agent: o.agent, tenant: o.tenant, session: o.session, start: true}
	d, err := c.describe(ctx, o.from.Session, "")
	switch {
	case isNotFound(err) && o.from.Life == "":
		return s, withHint(fmt.Errorf("no session %q in namespace %q at %s", o.from.Session, c.namespace, c.address),
			"if Temporal has forgotten it, name it with its life, as its part of the store is named: holdfast fork %s~LIFE --at turn-%d", o.from.Session, o.turn)
	case err != nil && !isNotFound(err):
		return s, err
	}
	info := d.GetWorkflowExecutionInfo()
	if name := info.GetType().GetName(); err == nil && name != agent.WorkflowSession {
		return s, fmt.Errorf("workflow %q is a %q and no session", o.from.Session, line(name, 64))
	}
	now := agent.NewScope(o.from.Session, firstRunOf(info))
	if o.from.Life == "" {
		o.from = now
	}
	if o.from == now { // of a session that had the id before, nothing is known here
		s.agent, s.tenant = cmp.Or(s.agent, c.attribute(info, agent.AttributeAgent)), cmp.Or(s.tenant, c.attribute(info, agent.AttributeTenant))
		s.queue = info.GetTaskQueue()
	}
	if s.agent == "" {
		s.agent = o.recordedAgent(ctx)
	}
	if s.agent == "" {
		return s, usageError("which agent is the new session with? It is not known here: --agent NAME")
	}
	s.queue = o.app.queue(cmp.Or(o.queue, s.queue))
	switch {
	case s.session == "" && o.messageID != "":
		s.session = sessionFor(s.agent, fmt.Sprintf("%s:turn-%d\x00%s", o.from, o.turn, o.messageID))
	case s.session == "":
		s.session = newSessionID(s.agent)
	}
	return s, nil
}

// recordedAgent is what the turn's closing record says, when the store is at hand.
func (o *forkOptions) recordedAgent(ctx context.Context) string {
	st := o.app.storeAtHand(ctx)
	if st == nil {
		return ""
	}
	defer func() { _ = st.Close() }()
	r, err := closingRecord(ctx, st, o.from, address{session: o.from.Session, turn: o.turn})
	if err != nil {
		return ""
	}
	return r.Agent
}

// statement says who forks, and signs it or prints the bytes to sign.
func (o *forkOptions) statement(ctx context.Context, s submission) (*agent.Fork, error) {
	at, err := o.moment()
	if err != nil {
		return nil, err
	}
	f := &agent.Fork{From: o.from, Turn: o.turn, Approver: o.approver(), Reason: o.reason, Time: at}
	b := approval.ForkBytes(s.session, s.agent, *f)
	if o.print {
		return nil, o.printSigned(o.app, b, at)
	}
	f.Signature, err = o.prove(ctx, b)
	return f, err
}

// sign proves who sends the message, where there is a key to do it with.
func (o *forkOptions) sign(ctx context.Context, session string, m *agent.Message) error {
	key := cmp.Or(o.key, os.Getenv("HOLDFAST_KEY"))
	if key == "" || o.signatureFile != "" {
		return nil
	}
	m.Time = time.Now().UTC().Truncate(time.Second)
	var err error
	m.Signature, err = signWith(ctx, key, approval.MessageBytes(session, *m))
	return err
}

// start starts the session without a message and waits for the word on the fork.
func (o *forkOptions) start(ctx context.Context, c *conn, s submission) error {
	fresh, err := o.app.checkSession(ctx, c, s)
	if err != nil {
		return err
	}
	if fresh {
		err = c.begin(ctx, s)
	} else {
		err = c.sameFork(ctx, s)
	}
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	p := &printer{app: o.app, session: s.session}
	r := forked{Session: s.session, Agent: s.agent, From: o.from, Turn: o.turn}
	err = c.awaitFork(limit, s, p.stderrNotice, &r)
	switch {
	case ctx.Err() != nil:
		o.app.leave("the session %s was started; see what becomes of it: holdfast attention, holdfast sessions", s.session)
		return ctx.Err()
	case err != nil && !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	return o.report(r)
}

// send starts the session with its message and follows the turn.
func (o *forkOptions) send(ctx context.Context, c *conn, s submission) error {
	fresh, err := o.app.checkSession(ctx, c, s)
	if err == nil && !fresh {
		err = c.sameFork(ctx, s)
	}
	if err != nil {
		return err
	}
	p := &printer{app: o.app, session: s.session}
	if !o.app.json() {
		o.app.note("session %s", s.session)
	}
	got, err := c.submit(ctx, s, p.notice)
	var closed errSessionClosed
	if err != nil && !errors.As(err, &closed) {
		if ctx.Err() != nil {
			o.app.notAccepted(s)
		}
		return err
	}
	r := forked{Session: s.session, Agent: s.agent, From: o.from, Turn: o.turn}
	if forkErr := c.awaitFork(ctx, s, p.notice, &r); forkErr != nil {
		return forkErr
	}
	if r.Result == wordRefused {
		return o.report(r)
	}
	if r.Origin != nil {
		p.event(event{Type: evForked, Time: time.Now(), Text: "forked from " + line(originText(r.Origin), 2*lineLimit)})
	}
	if err != nil { // it was closed after all: its turn can still be followed
		return o.app.deliver(ctx, c, s, false)
	}
	return o.app.followMessage(ctx, c, s, got, p, false)
}
