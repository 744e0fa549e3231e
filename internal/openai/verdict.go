package openai

import (
	"context"
	"errors"
	"net"
	"net/url"

	"github.com/holdfast-run/holdfast/agent"
)

// verdict returns why the exchange brought no answer, or nil if it did. err is what go-openai said, which
// counts for little: its errors carry no headers and fail on bodies that the exchange has read.
func (x *exchange) verdict(ctx context.Context, err error) *Error {
	var ours *Error
	var bad *undecodable
	switch {
	case x.failure != nil:
		return x.failure
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &bad) && x.torn:
		return lost(agent.ErrStreamCut, "the stream ended in the middle of a line, after %d bytes", x.arrived)
	case errors.As(err, &bad):
		return badAnswer("a piece of the stream is no part of a completion: %v", bad.error)
	case x.status >= 400 && ctx.Err() == nil:
		return classify(x.status, x.header, x.raw)
	case x.status >= 300 && ctx.Err() == nil:
		return x.redirected()
	case x.trouble != nil:
		return classify(0, x.header, x.trouble)
	case x.whole, err == nil:
		return nil
	}
	return x.broken(ctx, err)
}

func (x *exchange) redirected() *Error {
	where := clean(x.header.Get("Location"), 200)
	if u, err := url.Parse(where); err == nil {
		where = u.Redacted()
	}
	e := &Error{Type: agent.ErrBadRequest, Status: x.status}
	e.Message = "the server redirects to \"" + where + "\", which is not followed with a key; set base_url to where it means"
	return e
}

// broken tells the ways apart in which a connection fails.
func (x *exchange) broken(ctx context.Context, err error) *Error {
	var timeout net.Error
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errIdle):
		return lost(agent.ErrModelTimeout, "nothing came for %s in the middle of the answer", x.cfg.IdleTimeout)
	case errors.Is(cause, errAttempt):
		return lost(agent.ErrModelTimeout, "no whole answer within %s", x.cfg.AttemptTimeout)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e := lost(agent.ErrModelTimeout, "no whole answer within the time left")
		e.cause = ctx.Err()
		return e
	case ctx.Err() != nil:
		return &Error{Type: agent.ErrCancelled, Message: "the call was cancelled", cause: ctx.Err()}
	case !x.connected.Load() && isTransport(err):
		return lost(agent.ErrUnreachable, "cannot reach %q: %v; check base_url and that the server runs", x.cfg.host(), inner(err))
	case errors.As(err, &timeout) && timeout.Timeout():
		return lost(agent.ErrModelTimeout, "no answer in time: %v", inner(err))
	case x.status == 0 && !x.connected.Load():
		return refused("%v", err) // go-openai's own rules about models
	case x.status == 0:
		return lost(agent.ErrStreamCut, "the connection was cut before an answer came: %v", inner(err))
	}
	e := lost(agent.ErrStreamCut, "the connection was cut after %d bytes of the answer: %v", x.arrived, inner(err))
	e.Status = x.status
	return e
}

func lost(class, format string, args ...any) *Error {
	e := badAnswer(format, args...)
	e.Type = class
	return e
}

// isTransport says whether err comes from sending, not from go-openai's checks before it.
func isTransport(err error) bool {
	var u *url.Error
	return errors.As(err, &u)
}

// inner drops the method and the address, which say nothing new.
func inner(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
