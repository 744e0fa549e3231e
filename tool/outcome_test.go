package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"
)

func TestMeaningTakesTheOutermostMark(t *testing.T) {
	t.Parallel()
	plain := errors.New("x")
	cases := []struct {
		err  error
		want Outcome
	}{
		{plain, OutcomeAmbiguous},
		{context.Canceled, OutcomeAmbiguous},
		{NotSent(plain), OutcomeNotSent},
		{Failed(plain), OutcomeFailed},
		{Ambiguous(plain), OutcomeAmbiguous},
		{fmt.Errorf("while paying: %w", Failed(plain)), OutcomeFailed},
		{Ambiguous(fmt.Errorf("second attempt: %w", NotSent(plain))), OutcomeAmbiguous},
		{NotSent(Failed(plain)), OutcomeNotSent},
	}
	for _, c := range cases {
		if got := Meaning(c.err); got != c.want {
			t.Errorf("%v: got %s, want %s", c.err, got, c.want)
		}
	}
}

func TestMarksKeepTheErrorAndNil(t *testing.T) {
	t.Parallel()
	for _, mark := range []func(error) error{NotSent, Failed, Ambiguous} {
		if mark(nil) != nil {
			t.Error("nil became an error")
		}
		if err := mark(io.EOF); !errors.Is(err, io.EOF) || err.Error() != "EOF" {
			t.Errorf("got %v", err)
		}
	}
}

func TestRetryAfterIsFoundBelowOtherMarks(t *testing.T) {
	t.Parallel()
	err := Failed(fmt.Errorf("x: %w", mark(OutcomeAmbiguous, io.EOF, time.Second)))
	if got := RetryAfter(err); got != time.Second {
		t.Errorf("got %s", got)
	}
	if RetryAfter(io.EOF) != 0 || RetryAfter(nil) != 0 {
		t.Error("a wait out of nothing")
	}
}
