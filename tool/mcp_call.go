package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-run/holdfast/agent"
)

// MCPKey is the member of a request's _meta that carries the idempotency key. The protocol wants such
// names to begin with a reversed domain name of whoever defines them.
const MCPKey = "io.github.holdfast-run/idempotency-key"

// An mcpTool is one tool of a server, in the version that it had when the server was first connected to.
type mcpTool struct {
	server *MCPServer
	remote string
	spec   Spec
	digest agent.Digest // of what the server said about it
	more   extras
}

func (t *mcpTool) Spec() Spec     { return t.spec }
func (t *mcpTool) extras() extras { return t.more }

// Do calls the tool.
func (t *mcpTool) Do(ctx context.Context, c Call) (Result, error) {
	link := t.server.link
	a, res, err := t.call(ctx, c)
	if a == nil {
		return res, err
	}
	if a.err != nil {
		return Result{}, t.refused(a.err)
	}
	res, err = readResult(a.result, link.cfg.MaxResult)
	switch {
	case errors.Is(err, errAnswerTooLarge):
		return t.tooLarge()
	case err != nil:
		return Result{}, Failed(link.mask.Error(err))
	}
	return t.masked(res), nil
}

// masked masks what is text.
func (t *mcpTool) masked(res Result) Result {
	if res.textual() {
		res.Data = t.server.link.mask.Bytes(res.Data)
	}
	return res
}

func (r Result) textual() bool {
	return r.Type == "" || r.Type == jsonType || strings.HasPrefix(r.Type, "text/")
}

// call makes the call and returns the answer, or without one what that means. A call that was not sent because the
// server had died meanwhile is made once more.
func (t *mcpTool) call(ctx context.Context, c Call) (*answer, Result, error) {
	link := t.server.link
	if !json.Valid([]byte(c.Args)) {
		return nil, Result{}, Failed(fmt.Errorf("the arguments of %q are not JSON", t.remote))
	}
	ctx, cancel := context.WithTimeout(ctx, t.spec.Timeout)
	defer cancel()
	defer context.AfterFunc(link.ctx, cancel)() //nolint:contextcheck // Close ends calls that are running
	free, err := t.server.slots.take(ctx, c.Scope)
	if err != nil {
		if link.ctx.Err() != nil {
			err = errMCPClosed // which ended the wait
		}
		return nil, Result{}, NotSent(link.about(err))
	}
	defer free()
	a, res, err := t.try(ctx, c)
	var lost *lostError
	if errors.As(err, &lost) && Meaning(err) == OutcomeNotSent && ctx.Err() == nil {
		a, res, err = t.try(ctx, c)
	}
	return a, res, err
}

// A lostError says that the session ended, or that the server does not know it any more.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }
func (e *lostError) Unwrap() error { return e.err }

func (t *mcpTool) try(ctx context.Context, c Call) (*answer, Result, error) {
	link := t.server.link
	s, err := link.session(ctx)
	if err != nil {
		return nil, Result{}, err
	}
	now, err := s.current(ctx, t.remote, link.cfg.ListTimeout)
	if err != nil {
		return nil, Result{}, NotSent(t.trouble(ctx, s, err))
	}
	if now != t.digest {
		return nil, Result{}, Failed(link.about(fmt.Errorf("tool changed on the server: %q is not what it was when the worker "+
			"connected to it, and was not called; have the operator look at it and start the worker anew", t.remote)))
	}
	a, sent, err := t.send(ctx, s, c)
	if a == nil {
		res, err := t.unanswered(ctx, s, sent, err)
		return nil, res, err
	}
	s.answered.Store(true)
	return a, Result{}, nil
}

// send makes the request. Without an answer it says whether anything was sent and what went wrong.
func (t *mcpTool) send(ctx context.Context, s *mcpSession, c Call) (_ *answer, sent bool, _ error) {
	ctx, f, done := newFlight(ctx)
	defer done()
	params := &mcp.CallToolParams{Name: t.remote, Arguments: json.RawMessage(c.Args)}
	if c.Key != "" { // an ask has none of its own
		params.Meta = mcp.Meta{MCPKey: c.Key}
	}
	_, err := s.cs.CallTool(ctx, params)
	if a := f.answer.Load(); a != nil {
		return a, true, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err == nil {
		err = errors.New("the connection gave no answer")
	}
	return nil, !f.abandon(), err
}

// unanswered says what it means that a call got no answer.
func (t *mcpTool) unanswered(ctx context.Context, s *mcpSession, sent bool, err error) (Result, error) {
	link := t.server.link
	var status *statusError
	switch {
	case errors.Is(err, errAnswerTooLarge):
		s.answered.Store(true)
		return t.tooLarge()
	case errors.As(err, &status) && status.sessionGone():
		link.drop(s)
		return Result{}, NotSent(&lostError{link.about(err)})
	case errors.As(err, &status) && status.definite():
		return Result{}, Failed(link.about(err))
	case status != nil:
		return Result{}, mark(OutcomeAmbiguous, link.about(err), status.after)
	case sent:
		return Result{}, Ambiguous(fmt.Errorf("no answer to the call of %q, which may have taken effect: %w", t.remote, t.trouble(ctx, s, err)))
	}
	return Result{}, NotSent(t.trouble(ctx, s, err))
}

// trouble describes an error of the connection, and drops the session when it is of no more use.
func (t *mcpTool) trouble(ctx context.Context, s *mcpSession, err error) error {
	link := t.server.link
	var own *flightError
	switch {
	case link.ctx.Err() != nil:
		return link.about(errMCPClosed)
	case errors.As(err, &own):
		return link.about(err)
	case errors.Is(err, context.DeadlineExceeded):
		return link.about(s.silence(fmt.Errorf("it did not answer in time: %w", err)))
	case ctx.Err() != nil || !s.broken(err):
		return link.about(err)
	}
	err = &lostError{link.about(s.explain(err))}
	link.drop(s)
	return err
}

// refused is the server's own error, for the model.
func (t *mcpTool) refused(err error) error {
	text := err.Error()
	var rpc *jsonrpc.Error
	if errors.As(err, &rpc) {
		text = fmt.Sprintf("%s (error %d)", rpc.Message, rpc.Code)
	}
	return Failed(errors.New(clip(printable(t.server.link.mask.String(text)), maxErrorText)))
}

// tooLarge is what becomes of a call whose answer cannot be kept. Nothing is lost by saying of a read that
// it failed; of anything else that would invite the model to do it again.
func (t *mcpTool) tooLarge() (Result, error) {
	text := fmt.Sprintf("the answer of %q is larger than %d MiB and was not kept; ask for less at a time", t.remote, t.server.cfg.MaxResult>>20)
	if t.spec.Class == agent.ClassRead {
		return Result{}, Failed(errors.New(text))
	}
	return Result{Data: []byte("[the call was answered, but " + text + "]")}, nil
}
