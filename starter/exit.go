package starter

import (
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"

	"github.com/holdfast-run/holdfast/agent"
)

// Exit codes of every command; "holdfast help exit-codes" lists them.
const (
	ExitDone        = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitFailed      = 4 // the turn failed
	ExitCancelled   = 5 // the turn was cancelled
	ExitBudget      = 6 // the turn used up its budget
	ExitRefused     = 7 // what was sent was looked at and does not count
	ExitWaiting     = 8 // something waits for a person, or no answer came in time
	ExitInterrupted = 130
)

// exitError ends the program with a code of its own; with a nil err everything has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{ExitUsage, fmt.Errorf(format, args...)}
}

// hintError carries what to do about an error.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

func withHint(err error, format string, args ...any) error {
	return &hintError{err, fmt.Sprintf(format, args...)}
}

// explain returns an error's text for a person and what to do about it.
func explain(err error) (message, hint string) {
	message = err.Error()
	var (
		hinted    *hintError
		namespace *serviceerror.NamespaceNotFound
		denied    *serviceerror.PermissionDenied
		invalid   *serviceerror.InvalidArgument
	)
	switch {
	case errors.As(err, &hinted):
		hint = hinted.hint
	case errors.As(err, &namespace):
		message = fmt.Sprintf("the Temporal server has no namespace %q", namespace.Namespace)
		hint = "name another with --namespace or TEMPORAL_NAMESPACE, or make it: temporal operator namespace create"
	case errors.As(err, &denied):
		hint = "check TEMPORAL_API_KEY, or the profile that --profile names"
	case errors.As(err, &invalid) && strings.Contains(strings.ToLower(message), "search attribute"):
		hint = "register the search attributes once in this namespace: holdfast setup"
	}
	return message, hint
}

// statusError turns the end of a turn into the command's.
func statusError(s agent.Status) error {
	switch s {
	case agent.StatusFailed:
		return &exitError{code: ExitFailed}
	case agent.StatusCancelled:
		return &exitError{code: ExitCancelled}
	case agent.StatusBudget:
		return &exitError{code: ExitBudget}
	case agent.StatusWaiting:
		return &exitError{code: ExitWaiting}
	}
	return nil
}
