package policy

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// weights charges calls by the size of what they look at. CEL's own model charges 1 for whatever it finds the types
// of only at run time, and members of args are all of that kind: arguments of a megabyte could keep a worker busy
// for minutes within its limit.
type weights struct{}

// CallCost returns the cost of a call, nil where CEL's model knows better: a search costs the product.
func (weights) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	if function == "matches" || function == "contains" {
		return nil
	}
	deep := false
	switch function {
	case operators.Equals, operators.NotEquals, operators.In, operators.OldIn:
		deep = true
	}
	cost := uint64(1)
	for _, a := range args {
		cost += weight(a, deep)
	}
	return &cost
}

// weight is a tenth of a text's bytes, and, deep, the number of values in a list or map with what they weigh. It
// stops counting when it is more than a condition may cost.
func weight(v ref.Val, deep bool) uint64 {
	switch v := v.(type) {
	case types.String:
		return uint64(len(v)) / 10
	case types.Bytes:
		return uint64(len(v)) / 10
	case traits.Lister:
		if deep {
			return total(v.Iterator(), func(e ref.Val) uint64 { return weight(e, true) })
		}
	case traits.Mapper:
		if deep {
			return total(v.Iterator(), func(key ref.Val) uint64 {
				held, _ := v.Find(key)
				return weight(key, true) + weight(held, true)
			})
		}
	}
	return 0
}

func total(it traits.Iterator, weigh func(ref.Val) uint64) uint64 {
	sum := uint64(0)
	for it.HasNext() == types.True && sum <= maxCost {
		sum += 1 + weigh(it.Next())
	}
	return sum
}
