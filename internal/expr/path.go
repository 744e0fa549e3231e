package expr

import (
	"fmt"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// A path is an expression that only names a place: args.amount, args["amount"], result.lines[0]. Its root is empty
// when an expression is more than that.
type path struct {
	root  string
	steps []any // string or int
}

func pathOf(e ast.Expr) path {
	switch e.Kind() {
	case ast.IdentKind:
		return path{root: e.AsIdent()}
	case ast.SelectKind:
		s := e.AsSelect()
		if s.IsTestOnly() {
			return path{}
		}
		return pathOf(s.Operand()).to(s.FieldName())
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() != operators.Index || c.Args()[1].Kind() != ast.LiteralKind {
			return path{}
		}
		switch at := c.Args()[1].AsLiteral().(type) {
		case types.String:
			return pathOf(c.Args()[0]).to(string(at))
		case types.Int:
			return pathOf(c.Args()[0]).to(int(at))
		}
	}
	return path{}
}

func (p path) to(step any) path {
	if p.root == "" {
		return p
	}
	return path{p.root, append(p.steps, step)}
}

// follow returns what stands at the path.
func (p path) follow(in Input) (any, error) {
	d, ok := in[p.root]
	if !ok {
		return nil, fmt.Errorf("there is no %q", p.root)
	}
	at := d.tree
	if err, ok := at.(error); ok {
		return nil, err
	}
	for _, step := range p.steps {
		found := false
		switch step := step.(type) {
		case string:
			var object map[string]any
			if object, ok = at.(map[string]any); ok {
				at, found = object[step]
			}
		case int:
			if list, ok := at.([]any); ok && step >= 0 && step < len(list) {
				at, found = list[step], true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s has no %#v", p.root, step)
		}
	}
	return at, nil
}
