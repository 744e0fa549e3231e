package policy

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// facts are what a condition sees of a request. They are one decision's, and not for concurrent use: args is
// made when a condition first asks for it.
type facts struct {
	r     *Request
	actor string
	args  ref.Val
}

// ResolveName returns the value of a variable.
func (f *facts) ResolveName(name string) (any, bool) {
	switch name {
	case "tool":
		return types.String(f.r.Tool), true
	case "effect":
		return types.String(class(f.r)), true
	case "risk":
		return types.String(f.r.Risk), true
	case "resource":
		return types.String(f.r.Resource), true
	case "session":
		return types.String(f.r.Scope.Session), true
	case "agent":
		return types.String(f.r.Agent.Name), true
	case "actor":
		return types.String(f.actor), true
	case "args":
		if f.args == nil {
			f.args = arguments(f.r.Args)
		}
		return f.args, true
	}
	return nil, false
}

// Parent returns nil: there is nothing around.
func (f *facts) Parent() cel.Activation { return nil }

// class is the request's effect class; a tool that declares none is the most dangerous kind.
func class(r *Request) agent.Class {
	if r.Class == "" {
		return agent.ClassOnce
	}
	return r.Class
}

// arguments returns the arguments as conditions see them, or an error value that fails every condition which
// looks at them.
func arguments(args string) ref.Val {
	if args == "" {
		args = "{}"
	}
	d := json.NewDecoder(strings.NewReader(args))
	d.UseNumber()
	var members map[string]any
	if err := d.Decode(&members); err != nil {
		return types.NewErr("the arguments cannot be read: %v", err)
	}
	for name, v := range members {
		exact, err := value(v)
		if err != nil {
			// The whole member fails, not only the number deep inside: CEL compares lists and maps without
			// passing on the errors of their elements.
			members[name] = types.NewErr("args[%q]: %v", name, err)
			continue
		}
		members[name] = exact
	}
	return types.NewStringInterfaceMap(types.DefaultTypeAdapter, members)
}

// value returns a JSON value as CEL has it, its numbers exact.
func value(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		return number(string(v))
	case []any:
		for i := range v {
			exact, err := value(v[i])
			if err != nil {
				return nil, err
			}
			v[i] = exact
		}
	case map[string]any:
		for name := range v {
			exact, err := value(v[name])
			if err != nil {
				return nil, err
			}
			v[name] = exact
		}
	}
	return v, nil
}

// number returns the value of a JSON number: an int if it is a whole number that fits, else a uint, else a
// double, if that is written with the same digits: then different texts stay different and keep their order.
// What no type holds is an error, so that no comparison goes by a rounded value.
func number(text string) (ref.Val, error) {
	exact := approval.NumberValue(text)
	if whole, ok := integer(exact); ok {
		if i, err := strconv.ParseInt(whole, 10, 64); err == nil {
			return types.Int(i), nil
		}
		if u, err := strconv.ParseUint(whole, 10, 64); err == nil {
			return types.Uint(u), nil
		}
	}
	d, err := strconv.ParseFloat(text, 64)
	if err != nil || approval.NumberValue(strconv.FormatFloat(d, 'e', -1, 64)) != exact {
		return nil, fmt.Errorf("the number %.40s cannot be compared exactly", text)
	}
	return types.Double(d), nil
}

// integer returns the digits of a number of [approval.NumberValue]'s form if it is whole and has at most 20.
func integer(exact string) (string, bool) {
	digits, exponent, found := strings.Cut(exact, "e")
	if !found {
		return exact, true // "0"
	}
	if e, err := strconv.Atoi(exponent); err == nil && e >= 0 && e <= 20 && len(digits)+e <= 21 {
		return digits + strings.Repeat("0", e), true
	}
	return "", false
}
