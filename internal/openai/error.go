package openai

import (
	"fmt"
	"time"
)

// An Error is why there is no answer. Every error of [Client.Ask] is one.
type Error struct {
	// Type is one of the agent.Err constants of a model call, or [agent.ErrCancelled] when the
	// caller's context was cancelled.
	Type string
	// Message is for a person: one line, bounded, without the key.
	Message string
	// Status is the HTTP status, or the one that an error object under 200 named; 0 when there was
	// none.
	Status int
	// RetryAfter is how long the server asks to wait, between 0 (it did not say) and
	// [MaxRetryAfter].
	RetryAfter time.Duration
	// Retry says that the same request may succeed when it is sent again.
	Retry bool

	cause error
	raw   []byte // the error's body as it came, bounded
}

// Error returns the type, the status and the message.
func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("%s (status %d): %s", e.Type, e.Status, e.Message)
	}
	return e.Type + ": " + e.Message
}

// Unwrap returns the context's error when that ended the call.
func (e *Error) Unwrap() error { return e.cause }
