package starter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-run/holdfast/agent"
)

// deliver submits a message and follows its turn. In a session that is closed meanwhile, the turn of a message
// that was sent before can still be followed.
func (a *App) deliver(ctx context.Context, c *conn, s submission, wait bool) error {
	fresh, err := a.checkSession(ctx, c, s)
	if err != nil {
		return err
	}
	p := &printer{app: a, session: s.session}
	if !a.json() {
		a.note("session %s", s.session)
	}
	r, err := c.submit(ctx, s, p.notice)
	var closed errSessionClosed
	switch {
	case errors.As(err, &closed):
		n, findErr := c.turnOf(ctx, s.session, s.message.ID)
		if findErr != nil || n == 0 {
			return withHint(err, "a session's id is used once; start another: holdfast run %s MESSAGE", cmp.Or(s.agent, "AGENT"))
		}
		r.Turn, r.Duplicate = n, true
	case err != nil && ctx.Err() != nil:
		a.notAccepted(s)
		return err
	case err != nil:
		return a.undo(ctx, c, s, fresh, err)
	}
	return a.followMessage(ctx, c, s, r, p, wait)
}

// notAccepted says how to repeat a message that no worker has taken yet. The server may still hand it to one, so
// the repetition must be the same message to the same session.
func (a *App) notAccepted(s submission) {
	flags := "--message-id " + s.message.ID
	if s.start {
		flags = "--session " + s.session + " " + flags
	}
	a.leave("the message was not accepted yet and may still be; the same command with %s sends it once", flags)
}

// checkSession says whether the session is still to be started, and refuses one that belongs to another
// agent.
func (a *App) checkSession(ctx context.Context, c *conn, s submission) (fresh bool, err error) {
	d, err := c.describe(ctx, s.session, "")
	if isNotFound(err) {
		if !s.start {
			_, err = c.describeSession(ctx, s.session)
			return false, err
		}
		return true, nil
	}
	if err != nil || !s.start {
		return false, err
	}
	if name := c.attribute(d.GetWorkflowExecutionInfo(), agent.AttributeAgent); name != "" && name != s.agent {
		return false, withHint(fmt.Errorf("session %q is with agent %q, not with %q", s.session, line(name, 64), s.agent),
			"send to it as it is: holdfast send %s MESSAGE; or choose another --session", s.session)
	}
	return false, nil
}

// undo closes a session that was started for a message that it then refused.
func (a *App) undo(ctx context.Context, c *conn, s submission, fresh bool, err error) error {
	var refused errRefused
	if !fresh || !errors.As(err, &refused) {
		return err
	}
	v, viewErr := c.view(ctx, s.session)
	if viewErr != nil || v.Turns > 0 || v.Queued > 0 {
		return withHint(err, "the session %s was started and is open: holdfast close %s", s.session, s.session)
	}
	if closeErr := c.SignalWorkflow(ctx, s.session, "", agent.SignalClose, agent.Close{From: claimed()}); closeErr != nil {
		return withHint(err, "the session %s was started and is open: holdfast close %s", s.session, s.session)
	}
	return withHint(err, "the session %s that had been started for it was closed again", s.session)
}

// followMessage follows the turn that takes a message, and the next one if a running turn ended before the
// model saw it.
func (a *App) followMessage(ctx context.Context, c *conn, s submission, r receipt, p *printer, wait bool) error {
	f := &follower{conn: c, session: s.session, queue: s.queue, show: p.event, stay: wait}
	if r.Duplicate {
		p.notice("this message had been accepted before; nothing was sent twice")
	}
	n := r.Turn
	for {
		var err error
		if n == 0 {
			if r.Ahead > 0 {
				p.notice(count(r.Ahead, "message") + " before it")
			}
			if n, err = f.awaitTurn(ctx, r.run, s); err != nil {
				return p.interrupted(ctx, f, err)
			}
		}
		if err = c.exists(ctx, agent.TurnID(s.session, n)); err != nil {
			return p.interrupted(ctx, f, err)
		}
		log, err := f.turn(ctx, n, nil)
		if err != nil {
			return p.interrupted(ctx, f, err)
		}
		if !undelivered(log, s.message.ID) {
			return p.finish(ctx, f, log)
		}
		p.notice("the turn ended before the model saw the message; it has the next turn")
		n, r.Ahead = 0, 0
	}
}

func undelivered(log *turnLog, message string) bool {
	if log.result == nil {
		return false
	}
	return slices.ContainsFunc(log.result.Undelivered, func(m agent.Message) bool { return m.ID == message })
}
