package tool

import (
	"errors"
	"time"
)

// An Outcome is what an error of [Tool.Do] says about the world.
type Outcome string

// The outcomes of an attempt that ended with an error.
const (
	// OutcomeNotSent: nothing reached the destination, so the call may be sent again.
	OutcomeNotSent Outcome = "not_sent"
	// OutcomeFailed: the destination said no. Its text goes to the model.
	OutcomeFailed Outcome = "failed"
	// OutcomeAmbiguous: it may or may not have happened.
	OutcomeAmbiguous Outcome = "ambiguous"
)

type outcomeError struct {
	outcome    Outcome
	err        error
	retryAfter time.Duration
}

func (e *outcomeError) Error() string { return e.err.Error() }
func (e *outcomeError) Unwrap() error { return e.err }

// NotSent marks err: nothing reached the destination. A nil err stays nil.
func NotSent(err error) error { return mark(OutcomeNotSent, err, 0) }

// Failed marks err as the destination's definite no: nothing was done, and the error's text, written
// for the model, says why. A nil err stays nil.
func Failed(err error) error { return mark(OutcomeFailed, err, 0) }

// Ambiguous marks err: the call may have taken effect. A plain error means the same; the mark overrides
// one further inside. A nil err stays nil.
func Ambiguous(err error) error { return mark(OutcomeAmbiguous, err, 0) }

func mark(o Outcome, err error, retryAfter time.Duration) error {
	if err == nil {
		return nil
	}
	return &outcomeError{outcome: o, err: err, retryAfter: retryAfter}
}

// Meaning returns what a non-nil err says about the world. The outermost mark counts; an error without
// one is ambiguous, because only who knows better may say that nothing happened.
func Meaning(err error) Outcome {
	var o *outcomeError
	if errors.As(err, &o) {
		return o.outcome
	}
	return OutcomeAmbiguous
}

// RetryAfter returns how long the destination asked to wait before the next attempt, 0 if it did not.
func RetryAfter(err error) time.Duration {
	var o *outcomeError
	for errors.As(err, &o) {
		if o.retryAfter > 0 {
			return o.retryAfter
		}
		err = o.err
	}
	return 0
}
