package tool

import (
	"context"
	"reflect"
)

// An Option gives a tool of [New] more than its calls.
type Option func(*options)

type options struct {
	extras
	types []named // the inputs that the options take, which must be the tool's
}

type named struct {
	option string
	in     reflect.Type
}

// WithReconcile lets the destination be asked what became of a call: see [Reconciler]. fn takes the same In as the
// tool's function, and Out is encoded as the tool's is. Every class but read may have it; reconcilable must.
func WithReconcile[In, Out any](fn func(context.Context, Call, In) (Finding, Out, error)) Option {
	return func(o *options) {}
}

// WithObserve lets a call say, before it is made, what state its target is in: see [Observer]. fn takes the same In
// as the tool's function, and Out is encoded as the tool's is.
func WithObserve[In, Out any](fn func(context.Context, Call, In) (Out, error)) Option {
	return func(o *options) {}
}

// WithCancel lets a call that is under way be asked to stop: see [Canceller]. The call is found by its key.
func WithCancel(fn func(context.Context, Call) error) Option {
	return func(o *options) {}
}
