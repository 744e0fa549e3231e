package tool

import (
	"context"
	"fmt"
	"reflect"
)

// An Option gives a tool of [New] more than its calls. A nil function gives nothing.
type Option func(*options)

type options struct {
	more   extras
	inputs []input
}

// An input is what the function of an option takes; it must be what the tool's takes.
type input struct {
	option string
	of     reflect.Type
}

// WithReconcile lets the destination be asked what became of a call: see [Reconciler]. fn takes the same In as the
// tool's function, and Out is encoded as the tool's is; it counts only with [Found]. Every class but read may have
// it; reconcilable must.
func WithReconcile[In, Out any](fn func(context.Context, Call, In) (Finding, Out, error)) Option {
	return func(o *options) {
		if fn == nil {
			return
		}
		o.inputs = append(o.inputs, input{"WithReconcile", reflect.TypeFor[In]()})
		o.more.reconcile = reconcileFunc(func(ctx context.Context, c Call) (_ Finding, r Result, err error) {
			defer recovered(&err)
			var in In
			if err := decode(c.Args, &in); err != nil {
				return Unknown, Result{}, err
			}
			f, out, err := fn(ctx, c, in)
			if err != nil || f != Found && f != Absent {
				return Unknown, Result{}, err
			}
			if f == Found {
				r, err = encode(out)
			}
			return f, r, err
		})
	}
}

// WithObserve lets a call say, before it is made, what state its target is in: see [Observer]. fn takes the same In
// as the tool's function, and Out is encoded as the tool's is.
func WithObserve[In, Out any](fn func(context.Context, Call, In) (Out, error)) Option {
	return func(o *options) {
		if fn == nil {
			return
		}
		o.inputs = append(o.inputs, input{"WithObserve", reflect.TypeFor[In]()})
		o.more.observe = observeFunc(func(ctx context.Context, c Call) (_ Result, err error) {
			defer recovered(&err)
			var in In
			if err := decode(c.Args, &in); err != nil {
				return Result{}, err
			}
			out, err := fn(ctx, c, in)
			if err != nil {
				return Result{}, err
			}
			return encode(out)
		})
	}
}

// WithCancel lets a call that is under way be asked to stop: see [Canceller]. The call is found by its key.
func WithCancel(fn func(context.Context, Call) error) Option {
	return func(o *options) {
		if fn == nil {
			return
		}
		o.more.cancel = cancelFunc(func(ctx context.Context, c Call) (err error) {
			defer recovered(&err)
			return fn(ctx, c)
		})
	}
}

// optionsFor applies options to a tool whose function takes in.
func optionsFor(in reflect.Type, opts []Option) (extras, error) {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	for _, i := range o.inputs {
		if i.of != in {
			return extras{}, fmt.Errorf("takes a %s, but the function of its %s a %s; take the same", in, i.option, i.of)
		}
	}
	return o.more, nil
}

// recovered turns a panic into an error: what was to be learnt is then not known.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("panicked: %s", clip(fmt.Sprint(p), 200))
	}
}

type reconcileFunc func(context.Context, Call) (Finding, Result, error)

func (f reconcileFunc) Reconcile(ctx context.Context, c Call) (Finding, Result, error) {
	finding, r, err := f(ctx, c)
	if err != nil {
		return Unknown, Result{}, err
	}
	return finding, r, nil
}

type observeFunc func(context.Context, Call) (Result, error)

func (f observeFunc) Observe(ctx context.Context, c Call) (Result, error) { return f(ctx, c) }

type cancelFunc func(context.Context, Call) error

func (f cancelFunc) Cancel(ctx context.Context, c Call) error { return f(ctx, c) }
