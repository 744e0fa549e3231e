package tool

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/internal/expr"
)

// A judge says by its conditions what an answer means for a call. absent may be nil: then nothing proves absence.
type judge struct{ found, absent *expr.Condition }

func newJudge(l *expr.Language, found, absent string) (j judge, err error) {
	if found == "" {
		return j, errors.New("found is empty; write the condition that says that the call took effect")
	}
	if j.found, err = l.Condition(found); err != nil {
		return j, fmt.Errorf("found: %w", err)
	}
	if absent == "" {
		return j, nil
	}
	if j.absent, err = l.Condition(absent); err != nil {
		return j, fmt.Errorf("absent: %w", err)
	}
	return j, nil
}

// judge looks at both conditions: an answer of which one cannot be told, or both hold, is not understood.
func (j judge) judge(in expr.Input) (Finding, error) {
	found, err := j.found.Holds(in)
	if err != nil {
		return Unknown, fmt.Errorf("found cannot be told: %w", err)
	}
	absent := false
	if j.absent != nil {
		if absent, err = j.absent.Holds(in); err != nil {
			return Unknown, fmt.Errorf("absent cannot be told: %w", err)
		}
	}
	switch {
	case found && absent:
		return Unknown, errors.New("found and absent both hold")
	case found:
		return Found, nil
	case absent:
		return Absent, nil
	}
	return Unknown, errors.New("neither found nor absent holds")
}

// callInput is what an expression may know of a call.
func callInput(c Call) (expr.Input, error) {
	args, err := expr.JSON([]byte(c.Args))
	if err != nil {
		return nil, fmt.Errorf("the arguments: %w", err)
	}
	return expr.Input{"args": args, "key": expr.Of(c.Key)}, nil
}

func textOf(data []byte) expr.Datum { return expr.Of(strings.ToValidUTF8(string(data), "\ufffd")) }

// jsonOf is null when the answer is no JSON.
func jsonOf(data []byte) expr.Datum {
	d, err := expr.JSON(data)
	if err != nil {
		return expr.Null()
	}
	return d
}
