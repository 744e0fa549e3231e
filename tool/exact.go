package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-run/holdfast/approval"
)

// decode fills in from canonical arguments, exactly or not at all.
//
// A float64 rounds silently, so what was decoded is encoded again and each number compared with the one
// that came: encoding/json writes the shortest text that reads back as the same float64, so 0.1 is equal
// and 9007199254740993 is not. A type with its own JSON form passes if it writes the number that it
// read, or no number at all.
func decode[In any](args string, in *In) error {
	if err := unmarshal(args, in); err != nil {
		return mismatch(err)
	}
	again, err := json.Marshal(in)
	if err != nil {
		return nil // a type that only reads JSON is its own judge
	}
	var sent, got any
	if err := unmarshal(args, &sent); err != nil {
		return err
	}
	if err := unmarshal(string(again), &got); err != nil {
		return err
	}
	return sameNumbers("", sent, got)
}

func unmarshal(text string, v any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func mismatch(err error) error {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		return fmt.Errorf("the argument %s cannot be used: %s does not fit the type %s; send another value",
			clip(strconv.QuoteToASCII(t.Field), 80), clip(t.Value, 80), t.Type)
	}
	return fmt.Errorf("the arguments do not match the tool's parameters: %s", clip(err.Error(), maxProblem))
}

// sameNumbers compares the numbers in both values, wherever both have one.
func sameNumbers(at string, sent, got any) error {
	switch s := sent.(type) {
	case json.Number:
		g, ok := got.(json.Number)
		if got == nil {
			g, ok = "0", true // left out by omitempty or omitzero
		}
		if ok && approval.NumberValue(string(s)) != approval.NumberValue(string(g)) {
			return fmt.Errorf("the argument %s cannot be used: %.80s would be rounded to %.80s; send a number that stays exact",
				clip(strconv.QuoteToASCII(at), 80), s, g)
		}
	case []any:
		g, _ := got.([]any)
		for i, x := range s[:min(len(s), len(g))] {
			if err := sameNumbers(at+"/"+strconv.Itoa(i), x, g[i]); err != nil {
				return err
			}
		}
	case map[string]any:
		g, ok := got.(map[string]any)
		for key, x := range s {
			if !ok && got != nil {
				break
			}
			if err := sameNumbers(at+"/"+key, x, g[key]); err != nil {
				return err
			}
		}
	}
	return nil
}

// encode makes a result of what a function returned.
func encode(out any) (Result, error) {
	switch out := out.(type) {
	case Result:
		return out, nil
	case string:
		return Result{Data: []byte(out)}, nil
	case []byte:
		return Result{Data: out, Type: octets}, nil
	}
	b, err := plainJSON(out)
	if err != nil {
		return Result{}, err
	}
	return Result{Data: b, Type: jsonType}, nil
}
