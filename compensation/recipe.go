package compensation

import (
	"fmt"

	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/internal/expr"
)

// A Recipe makes the arguments of a compensating call. It may be used by many goroutines.
type Recipe struct {
	tool string
	args *expr.Object
}

// New compiles a recipe: tool is the compensating tool, args are CEL expressions over "args" and "result", the
// original's arguments and JSON result, by the name of the compensating tool's argument.
func New(tool string, args map[string]string) (*Recipe, error) {
	l, err := expr.New(map[string]expr.Type{"args": expr.Any, "result": expr.Any})
	if err != nil {
		return nil, err
	}
	o, err := l.Object(args)
	if err != nil {
		return nil, fmt.Errorf("compensation by %.80q: %w", tool, err)
	}
	return &Recipe{tool: tool, args: o}, nil
}

// Tool returns the name of the compensating tool.
func (r *Recipe) Tool() string { return r.tool }

// Args returns the canonical arguments of the call that undoes the one with those canonical arguments and that
// result, which may be any text: only an expression that looks at it needs it to be JSON. An expression that only
// names a place (args.amount, result.lines[0].id) takes what stands there to the last digit; one that computes gets
// exact numbers or is an error. What is missing is an error and never left out: a compensation without one of its
// arguments might undo something else.
func (r *Recipe) Args(args, result string) (string, error) {
	in := expr.Input{}
	var err error
	if in["args"], err = expr.JSON([]byte(args)); err != nil {
		return "", fmt.Errorf("compensation by %.80q: the original's arguments: %w", r.tool, err)
	}
	if in["result"], err = expr.JSON([]byte(result)); err != nil {
		in["result"] = expr.Missing(fmt.Errorf("the original's result: %w", err))
	}
	raw, err := r.args.JSON(in)
	if err != nil {
		return "", fmt.Errorf("compensation by %.80q: %w", r.tool, err)
	}
	text, err := approval.Canonical(raw)
	if err != nil {
		return "", fmt.Errorf("compensation by %.80q: its arguments %w", r.tool, err)
	}
	return text, nil
}
