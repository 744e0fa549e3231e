package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"runtime/debug"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/holdfast-run/holdfast/agent"
)

// New makes a tool of a Go function.
//
// In is a struct (or a map with string keys): its JSON schema is derived from the type, with
// descriptions from `jsonschema:"..."` tags, and becomes the spec's Parameters, which are left empty.
// Fields without omitempty or omitzero are required, unknown ones are refused. Numbers reach the
// function exactly or not at all: one that does not fit its field, or that a float64 would change, is
// refused with a text for the model. Take a json.Number or a big.Int where any number may come; inside
// an `any`, numbers are json.Number.
//
// Out is a string (text), a []byte (application/octet-stream), a [Result], or anything that has a JSON
// form.
//
// What else the tool can do is added by options: [WithReconcile], [WithObserve], [WithCancel].
//
// The function may run in many goroutines at once. An error means what [Meaning] says of it; a panic is
// a failure of a tool that only reads, and ambiguous of any other.
func New[In, Out any](spec Spec, fn func(context.Context, Call, In) (Out, error), opts ...Option) (Tool, error) {
	if len(spec.Parameters) > 0 {
		return nil, fmt.Errorf("tool %.80q: its parameters are derived from the function's type; leave them empty", spec.Name)
	}
	if fn == nil {
		return nil, fmt.Errorf("tool %.80q: has no function", spec.Name)
	}
	more, err := optionsFor(reflect.TypeFor[In](), opts)
	if err != nil {
		return nil, fmt.Errorf("tool %.80q: %w", spec.Name, err)
	}
	parameters, err := parametersOf[In]()
	if err != nil {
		return nil, fmt.Errorf("tool %.80q: %w", spec.Name, err)
	}
	spec.Parameters = parameters
	if spec.Source == "" {
		spec.Source = "go"
	}
	if spec, err = Declare(spec, nil); err != nil {
		return nil, err
	}
	if err := checkExtras(spec, more.reconcile != nil); err != nil {
		return nil, err
	}
	sch, err := compile(spec)
	if err != nil {
		return nil, err
	}
	return &function[In, Out]{spec: spec, schema: sch, fn: fn, more: more}, nil
}

type function[In, Out any] struct {
	spec   Spec
	schema *schema
	fn     func(context.Context, Call, In) (Out, error)
	more   extras
}

func (f *function[In, Out]) Spec() Spec     { return f.spec }
func (f *function[In, Out]) extras() extras { return f.more }

// Do decodes the arguments, calls the function and encodes what it returns.
func (f *function[In, Out]) Do(ctx context.Context, c Call) (Result, error) {
	var in In
	// The schema knows names exactly, where Go's decoder takes "Amount" for "amount".
	if err := f.schema.validate(c.Args); err != nil {
		return Result{}, Failed(err)
	}
	if err := decode(c.Args, &in); err != nil {
		return Result{}, Failed(err)
	}
	out, err := f.call(ctx, c, in)
	if err != nil {
		return Result{}, err
	}
	r, err := encode(out)
	if err != nil {
		return Result{}, Ambiguous(fmt.Errorf("tool %q: its result has no JSON form: %w", f.spec.Name, err))
	}
	return r, nil
}

// call turns a panic into an error, so that a defect in one tool ends one call.
func (f *function[In, Out]) call(ctx context.Context, c Call, in In) (out Out, err error) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		err = &panicError{tool: f.spec.Name, value: fmt.Sprint(p), stack: debug.Stack()}
		if f.spec.Class == agent.ClassRead {
			err = Failed(err)
		} else {
			err = Ambiguous(err)
		}
	}()
	return f.fn(ctx, c, in)
}

// A panicError keeps the stack for the log and out of the text, which a model may see.
type panicError struct {
	tool, value string
	stack       []byte
}

func (e *panicError) Error() string {
	return fmt.Sprintf("tool %q panicked: %s", e.tool, clip(e.value, 200))
}

// Stack returns where it panicked; find it with errors.As and an interface that has this method.
func (e *panicError) Stack() string { return string(e.stack) }

func parametersOf[In any]() (json.RawMessage, error) {
	t := reflect.TypeFor[In]()
	if t.Kind() != reflect.Struct && (t.Kind() != reflect.Map || t.Key().Kind() != reflect.String) {
		return nil, fmt.Errorf("takes a %s; take a struct, its fields being the parameters", t)
	}
	// These have a JSON form that their Go type does not show.
	s, err := jsonschema.For[In](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.Number]():     {Type: "number"},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[big.Int]():         {Type: "integer"},
		reflect.TypeFor[[]byte]():          {Type: "string", Description: "base64"},
	}})
	if err != nil {
		return nil, fmt.Errorf("its parameters have no JSON schema: %w", err)
	}
	noNullArrays(s)
	return json.Marshal(s)
}

// noNullArrays takes back that a slice may be null: to a model that is one more way to say nothing, and
// some servers refuse a list of types.
func noNullArrays(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" && s.Types[1] == "array" {
		s.Type, s.Types = "array", nil
	}
	noNullArrays(s.Items)
	noNullArrays(s.AdditionalProperties)
	for _, p := range s.Properties {
		noNullArrays(p)
	}
}
