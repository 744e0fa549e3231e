package activities

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/openai"
)

const (
	// slotWait bounds the wait for a free request at a model within one attempt: the attempt's time is
	// the request's and a minute more.
	slotWait = 20 * time.Second
	// badTries is how many undecodable answers there may be: a proxy's error page goes away or does
	// not.
	badTries = 3
)

// ask sends the conversation to the model, once. Trying again is Temporal's.
func (r *modelRun) ask(t thread) (openai.Answer, error) {
	r.phase("waiting for a free request")
	wait, cancel := context.WithTimeout(r.ctx, slotWait)
	release, err := r.slots.take(wait, r.desk.def.Model, r.model.Concurrent)
	cancel()
	if err != nil {
		if r.ctx.Err() != nil {
			return openai.Answer{}, r.ctx.Err()
		}
		// No trouble of the model's, so it does not count as one.
		return openai.Answer{}, r.snap.retryable(agent.ErrOverloaded, backoff(1),
			"all %d requests that this worker may have open at model %q are busy", r.model.Concurrent, r.desk.def.Model)
	}
	defer release()
	if err := failpoint.AtErr(failpoint.ModelBeforeRequest); err != nil {
		return openai.Answer{}, r.snap.retryable(agent.ErrUnreachable, 0, "%v", err)
	}
	r.phase("asking the model")
	answer, err := r.model.Client.Ask(failpoint.Sent(r.ctx, failpoint.ModelAfterRequest), openai.Request{
		Messages: t.messages(r.desk.def.Instructions, r.snap.maxResult()),
		Tools:    r.desk.offered(), Progress: r.bytes,
	})
	if err != nil {
		return answer, r.troubled(err)
	}
	if err := failpoint.AtErr(failpoint.ModelAfterAnswer); err != nil {
		return answer, r.snap.retryable(agent.ErrStore, 0, "%v", err)
	}
	return answer, nil
}

// troubled says what an error of the model means for the call: tried again, by which time, or its end.
func (r *modelRun) troubled(err error) error {
	if errors.Is(r.ctx.Err(), context.Canceled) {
		return r.ctx.Err()
	}
	var e *openai.Error
	if !errors.As(err, &e) {
		return r.snap.final(agent.ErrInternal, "model %q: %v", r.desk.def.Model, err)
	}
	if !e.Retry {
		return r.snap.final(e.Type, "model %q: %v", r.desk.def.Model, e)
	}
	p := r.trouble()
	if e.Type == agent.ErrBadAnswer {
		p = r.note(func(p *Progress) { p.Bad++ })
	}
	left := cmp.Or(r.model.Call, DefaultCall) - time.Since(p.Since)
	wait := pause(e.RetryAfter, p.Troubles)
	switch {
	case p.Bad >= badTries:
		return r.snap.final(e.Type, "model %q: %v; given up after %d answers that could not be read", r.desk.def.Model, e, p.Bad)
	case left <= e.RetryAfter:
		return r.snap.final(e.Type, "model %q: %v; given up after %d troubles since %s", r.desk.def.Model, e, p.Troubles, p.Since.Format(time.RFC3339))
	}
	return r.snap.retryable(e.Type, min(wait, left), "model %q: %v", r.desk.def.Model, e)
}
