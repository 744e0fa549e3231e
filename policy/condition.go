package policy

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/ext"
)

const (
	maxCondition = 4 << 10 // bytes of one condition
	// maxCost bounds the evaluation of one condition, in CEL's own unit: about ten thousand elements in a
	// comprehension. Arguments are the model's, and must not burn the worker's time.
	maxCost = 100_000
	// maxRegex bounds the compiled size of a regular expression.
	maxRegex = 2_000
	// maxExact is where doubles stop holding every integer: a comparison with a larger one would round.
	maxExact = 1 << 53
)

// newEnv returns the language of conditions: CEL's standard, the string extensions and the variables. Numbers of
// different types compare by value, because JSON has one kind of number.
func newEnv() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("tool", cel.StringType), cel.Variable("effect", cel.StringType),
		cel.Variable("risk", cel.StringType), cel.Variable("resource", cel.StringType),
		cel.Variable("session", cel.StringType), cel.Variable("agent", cel.StringType),
		cel.Variable("actor", cel.StringType), cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
		cel.CrossTypeNumericComparisons(true), ext.Strings(), cel.RegexProgramSizeLimit(maxRegex),
		cel.ASTValidators(cel.ValidateRegexLiterals(), cel.ValidateDurationLiterals(), cel.ValidateTimestampLiterals()),
	)
}

// compile returns the program of a condition, or what is wrong with it as RuleErrors without a path.
func compile(env *cel.Env, when string) (cel.Program, []*RuleError) {
	if len(when) > maxCondition {
		return nil, []*RuleError{{Text: fmt.Sprintf("a condition of %d bytes; split it, %d is the most", len(when), maxCondition)}}
	}
	if !utf8.ValidString(when) {
		return nil, []*RuleError{{Text: "the condition is not UTF-8"}}
	}
	checked, issues := env.Compile(when)
	if issues.Err() != nil {
		var wrong []*RuleError
		for _, e := range issues.Errors() {
			wrong = append(wrong, &RuleError{Line: e.Location.Line(), Column: e.Location.Column() + 1, Text: e.Message})
		}
		return nil, wrong
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) && !t.IsExactType(cel.DynType) {
		return nil, []*RuleError{{Line: 1, Column: 1, Text: fmt.Sprintf("this is a %s; a condition is true or false", t)}}
	}
	if wrong := pitfalls(checked.NativeRep()); len(wrong) > 0 {
		return nil, wrong
	}
	program, err := env.Program(checked, cel.CostLimit(maxCost), cel.CostTracking(weights{}), cel.EvalOptions(cel.OptOptimize),
		cel.CustomDecoratorV2(finitely))
	if err != nil {
		return nil, []*RuleError{{Line: 1, Column: 1, Text: err.Error()}}
	}
	return program, nil
}

// pitfalls finds what type-checks and would be wrong at run time without an error:
//   - args as a whole in a comparison: CEL compares members without passing on their errors;
//   - a double that no longer holds every integer, which a comparison would round to;
//   - a call whose time is the product of two of the model's texts, which the cost limit sees too late.
func pitfalls(a *ast.AST) []*RuleError {
	var wrong []*RuleError
	say := func(e ast.Expr, text string) {
		at := a.SourceInfo().GetStartLocation(e.ID())
		wrong = append(wrong, &RuleError{Line: at.Line(), Column: at.Column() + 1, Text: text})
	}
	fine := map[int64]bool{}
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			fine[e.AsSelect().Operand().ID()] = true
		case ast.ComprehensionKind:
			fine[e.AsComprehension().IterRange().ID()] = true
		case ast.CallKind:
			if at := wholeArgument(e.AsCall()); at != nil {
				fine[at.ID()] = true
			}
			if multiplies(e.AsCall()) {
				say(e, "what "+e.AsCall().FunctionName()+" looks for or puts in must be written here, not taken from a variable")
			}
		case ast.IdentKind:
			if e.AsIdent() == "args" && !fine[e.ID()] {
				say(e, `args cannot be used as a whole; name its members, as in args.amount or args["amount"]`)
			}
		case ast.LiteralKind:
			if d, ok := e.AsLiteral().(types.Double); ok && math.Abs(float64(d)) >= maxExact {
				say(e, "a double of this size is not exact; write it as an integer, without point and exponent")
			}
		}
	}))
	return wrong
}

// wholeArgument returns the argument of a call that may be args itself, because it is only looked up in.
func wholeArgument(c ast.CallExpr) ast.Expr {
	switch args := c.Args(); c.FunctionName() {
	case operators.Index, "size":
		if c.IsMemberFunction() {
			return c.Target()
		}
		return args[0]
	case operators.In:
		return args[1]
	}
	return nil
}

// multiplies says whether the time of a call, or the length of its result, is that of two texts multiplied, of
// which none is the operator's.
func multiplies(c ast.CallExpr) bool {
	texts := c.Args()
	switch c.FunctionName() {
	case "replace", "join", "indexOf", "lastIndexOf", "split":
	case "matches":
		if !c.IsMemberFunction() && len(texts) > 1 {
			texts = texts[1:]
		}
	default:
		return false
	}
	return slices.ContainsFunc(texts, func(a ast.Expr) bool { return a.Kind() != ast.LiteralKind })
}

// holds evaluates a condition. An error is never "no": what it counts as is the caller's.
func holds(program cel.Program, f *facts) (bool, error) {
	out, _, err := program.Eval(f)
	if err != nil {
		return false, err
	}
	yes, ok := out.(types.Bool)
	if !ok {
		return false, errors.New("the condition is neither true nor false")
	}
	return bool(yes), nil
}
