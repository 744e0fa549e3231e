package policy

import (
	"math"

	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"
)

// finite is a call whose result has to be a number that compares with others. A text of the model's such as "NaN"
// converts to a double that is neither above nor below any limit, so that no condition would match it.
type finite struct{ interpreter.InterpretableCall }

// finitely plans calls that can make such a double out of what is none.
func finitely(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	switch call.Function() {
	case "double", operators.Add, operators.Subtract, operators.Multiply, operators.Divide:
		return finite{call}, nil
	}
	return i, nil
}

// Exec returns the call's result.
func (c finite) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	return finiteOnly(c.InterpretableCall.Exec(frame))
}

// Eval is Exec in the older form of the interface.
func (c finite) Eval(a interpreter.Activation) ref.Val {
	return finiteOnly(c.InterpretableCall.Eval(a))
}

// finiteOnly returns v, or an error value if it is no finite number.
func finiteOnly(v ref.Val) ref.Val {
	if d, ok := v.(types.Double); ok && (math.IsNaN(float64(d)) || math.IsInf(float64(d), 0)) {
		return types.NewErr("%v is not a number that can be compared", float64(d))
	}
	return v
}
