package tool

import (
	"context"
	"errors"
)

// New makes a tool of a Go function.
func New[In, Out any](spec Spec, fn func(context.Context, Call, In) (Out, error)) (Tool, error) {
	return nil, errors.New("not built yet")
}

// Add makes a tool of a Go function and puts it into the set.
func Add[In, Out any](s *Set, spec Spec, fn func(context.Context, Call, In) (Out, error)) error {
	t, err := New(spec, fn)
	if err != nil {
		return err
	}
	return s.Add(t)
}
