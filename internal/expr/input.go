package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// MaxJSON is the longest JSON text in bytes that an expression can look into.
const MaxJSON = 4 << 20

// An Input gives the variables their values.
type Input map[string]Datum

// A Datum is the value of one variable.
type Datum struct {
	tree any // as encoding/json has it, with json.Number
	val  ref.Val
}

// Of returns a string, bool or int as a value.
func Of[T string | bool | int](v T) Datum {
	return Datum{v, types.DefaultTypeAdapter.NativeToValue(v)}
}

// Null is JSON's null.
func Null() Datum { return Datum{nil, types.NullValue} }

// Missing is a value that fails every expression which looks at it, for that reason.
func Missing(why error) Datum { return Datum{why, types.WrapErr(why)} }

// JSON returns a JSON text as a value.
func JSON(text []byte) (Datum, error) {
	if len(text) > MaxJSON {
		return Datum{}, fmt.Errorf("it has %d bytes of JSON, of which at most %d are looked at", len(text), MaxJSON)
	}
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return Datum{}, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Datum{}, errors.New("it is not JSON: something follows the value")
	}
	return Datum{tree, value(tree)}, nil
}

func value(tree any) ref.Val {
	switch v := tree.(type) {
	case json.Number:
		return number(string(v))
	case []any:
		list := make([]ref.Val, len(v))
		for i, x := range v {
			list[i] = value(x)
		}
		return types.NewRefValList(types.DefaultTypeAdapter, list)
	case map[string]any:
		members := make(map[string]any, len(v))
		for name, x := range v {
			members[name] = value(x)
		}
		return types.NewStringInterfaceMap(types.DefaultTypeAdapter, members)
	default: // nil, bool, string
		return types.DefaultTypeAdapter.NativeToValue(v)
	}
}

// number is exact or an error: a comparison must not turn on digits that were lost.
func number(text string) ref.Val {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return types.Int(i)
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return types.Uint(u)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || digits(text) != digits(strconv.FormatFloat(f, 'e', -1, 64)) {
		return types.NewErr("the number %.40s has more digits than can be computed with", text)
	}
	return types.Double(f)
}

// digits returns a text that is equal for numbers of equal value, and for some that no float64 comes near it says
// only that.
func digits(number string) string {
	number, negative := strings.CutPrefix(number, "-")
	mantissa, exponent := number, "0"
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa, exponent = number[:i], number[i+1:]
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	all := strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(all, "0")
	if trimmed == "" {
		return "0"
	}
	e, err := strconv.Atoi(exponent)
	if err != nil {
		return "out of range"
	}
	return fmt.Sprint(negative, trimmed, " e", e+len(all)-len(trimmed)-len(fraction))
}
