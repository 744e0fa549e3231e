package openai

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast-run/holdfast/agent"
)

// An Error is why there is no answer. Every error of [Client.Ask] is one.
type Error struct {
	// Type is one of the agent.Err constants of a model call, or [agent.ErrCancelled] when the
	// caller's context was cancelled.
	Type string
	// Message is for a person: one line, bounded, without the key.
	Message string
	// Status is the HTTP status, or the one that an error object under 200 named; 0 when there was
	// none, as with a request that was not sent.
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

func badAnswer(format string, args ...any) *Error {
	return &Error{Type: agent.ErrBadAnswer, Message: fmt.Sprintf(format, args...), Retry: true}
}

// refused is a request that was not sent.
func refused(format string, args ...any) *Error {
	return &Error{Type: agent.ErrBadRequest, Message: "not sent: " + fmt.Sprintf(format, args...)}
}

// maxMessage bounds Error.Message, in bytes.
const maxMessage = 600

// looksLikeKey matches what providers repeat of a wrong key, also when they star a part of it.
var looksLikeKey = regexp.MustCompile(`\b(sk|pk|gsk|xai|AIza)[-_A-Za-z0-9*.]{8,}`)

// sealed returns e with a message that is fit to be stored and shown.
func (e *Error) sealed(key string) *Error {
	if len(key) >= minHidden {
		e.Message = strings.ReplaceAll(e.Message, key, "[key]")
	}
	e.Message = clean(looksLikeKey.ReplaceAllString(e.Message, "[key]"), maxMessage)
	return e
}

// clean returns s as one line of printable text in valid UTF-8, at most limit bytes long.
func clean(s string, limit int) string {
	if len(s) > 8*limit {
		s = s[:8*limit] // bounds the work; the end is cut below in any case
	}
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "..."
	}
	return s
}
