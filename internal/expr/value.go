package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// plain turns a value of CEL into one that encoding/json writes.
func plain(v ref.Val) (any, error) {
	switch v := v.(type) {
	case types.Null:
		return nil, nil
	case types.Bool:
		return bool(v), nil
	case types.String:
		return string(v), nil
	case types.Int:
		return int64(v), nil
	case types.Uint:
		return uint64(v), nil
	case types.Double:
		if f := float64(v); !math.IsNaN(f) && !math.IsInf(f, 0) {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64)), nil
		}
		return nil, errors.New("it is no finite number")
	case traits.Lister:
		return plainList(v)
	case traits.Mapper:
		return plainMap(v)
	case *types.Err:
		return nil, v
	}
	return nil, fmt.Errorf("it is a %s, which has no JSON form", v.Type().TypeName())
}

func plainList(v traits.Lister) (any, error) {
	list := []any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		x, err := plain(it.Next())
		if err != nil {
			return nil, err
		}
		list = append(list, x)
	}
	return list, nil
}

func plainMap(v traits.Mapper) (any, error) {
	object := map[string]any{}
	for it := v.Iterator(); it.HasNext() == types.True; {
		key := it.Next()
		name, ok := key.(types.String)
		if !ok {
			return nil, fmt.Errorf("it has a %s as the name of a member", key.Type().TypeName())
		}
		x, err := plain(v.Get(key))
		if err != nil {
			return nil, err
		}
		object[string(name)] = x
	}
	return object, nil
}

// encode writes a value without the escapes that only HTML needs.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// An Object makes a JSON object of one expression for each of its members.
type Object struct {
	names  []string
	values []*Value
}

// Object compiles the expressions of an object's members.
func (l *Language) Object(members map[string]string) (*Object, error) {
	o := &Object{}
	for name := range members {
		o.names = append(o.names, name)
	}
	slices.Sort(o.names)
	for _, name := range o.names {
		v, err := l.Value(members[name])
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", name, err)
		}
		o.values = append(o.values, v)
	}
	return o, nil
}

// JSON evaluates the expressions.
func (o *Object) JSON(in Input) (json.RawMessage, error) {
	members := map[string]json.RawMessage{}
	for i, name := range o.names {
		raw, err := o.values[i].JSON(in)
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", name, err)
		}
		members[name] = raw
	}
	return encode(members)
}
