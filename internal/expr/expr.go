package expr

import (
	"encoding/json"
	"fmt"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
)

// maxCost bounds one evaluation, in CEL's own measure: some tenths of a second at worst.
const maxCost = 4 << 20

// A Type is what a variable is declared as.
type Type int

// The types.
const (
	Any Type = iota // JSON
	Text
	Int
	Bool
)

func (t Type) cel() *cel.Type {
	return [...]*cel.Type{cel.DynType, cel.StringType, cel.IntType, cel.BoolType}[t]
}

// A Language is CEL with some variables. It may be used by many goroutines, as may what it compiles.
type Language struct{ env *cel.Env }

// New returns the language that has those variables besides CEL's own functions and those on strings.
func New(variables map[string]Type) (*Language, error) {
	opts := []cel.EnvOption{cel.CrossTypeNumericComparisons(true), ext.Strings()}
	for name, t := range variables {
		opts = append(opts, cel.Variable(name, t.cel()))
	}
	env, err := cel.NewEnv(opts...)
	if err != nil {
		return nil, fmt.Errorf("expressions: %w", err)
	}
	return &Language{env}, nil
}

// A Condition is an expression that holds or does not.
type Condition struct{ program cel.Program }

// Condition compiles a condition.
func (l *Language) Condition(text string) (*Condition, error) {
	ast, program, err := l.compile(text)
	if err != nil {
		return nil, err
	}
	if t := ast.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("%q is a %s and not a condition; compare it with something", text, t)
	}
	return &Condition{program}, nil
}

// Holds evaluates the condition. What it looks at and is not there is an error.
func (c *Condition) Holds(in Input) (bool, error) {
	v, err := eval(c.program, in)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, fmt.Errorf("it is a %s and not true or false", v.Type().TypeName())
	}
	return bool(b), nil
}

// A Value is an expression that gives a JSON value.
type Value struct {
	program cel.Program
	path    path
}

// Value compiles an expression that gives a value.
func (l *Language) Value(text string) (*Value, error) {
	ast, program, err := l.compile(text)
	if err != nil {
		return nil, err
	}
	return &Value{program, pathOf(ast.NativeRep().Expr())}, nil
}

// JSON evaluates the expression.
func (v *Value) JSON(in Input) (json.RawMessage, error) {
	var found any
	var err error
	if v.path.root != "" {
		found, err = v.path.follow(in)
	} else {
		var val ref.Val
		if val, err = eval(v.program, in); err == nil {
			found, err = plain(val)
		}
	}
	if err != nil {
		return nil, err
	}
	return encode(found)
}

func (l *Language) compile(text string) (*cel.Ast, cel.Program, error) {
	if text == "" {
		return nil, nil, fmt.Errorf("the expression is empty; write one")
	}
	ast, issues := l.env.Compile(text)
	if issues.Err() != nil {
		first := issues.Errors()[0]
		return nil, nil, fmt.Errorf("%q: line %d, column %d: %s", text, first.Location.Line(), first.Location.Column()+1, first.Message)
	}
	program, err := l.env.Program(ast, cel.CostLimit(maxCost))
	if err != nil {
		return nil, nil, fmt.Errorf("%q: %w", text, err)
	}
	return ast, program, nil
}

func eval(p cel.Program, in Input) (ref.Val, error) {
	vars := make(map[string]any, len(in))
	for name, v := range in {
		vars[name] = v.val
	}
	v, _, err := p.Eval(vars)
	if err != nil {
		return nil, err
	}
	return v, nil
}
