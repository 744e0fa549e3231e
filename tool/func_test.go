package tool

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

type embedded struct {
	Inner int8 `json:"inner,omitempty"`
}

type everything struct {
	embedded
	Name   string          `json:"name" jsonschema:"who it is for"`
	Count  int64           `json:"count,omitempty"`
	Small  uint8           `json:"small,omitempty"`
	Amount float64         `json:"amount,omitempty"`
	Narrow float32         `json:"narrow,omitempty"`
	Exact  json.Number     `json:"exact,omitempty"`
	Big    *big.Int        `json:"big,omitempty"`
	Raw    json.RawMessage `json:"raw,omitempty"`
	Any    any             `json:"any,omitempty"`
	Bytes  []byte          `json:"bytes,omitempty"`
	List   []float64       `json:"list,omitempty"`
	Map    map[string]int  `json:"map,omitempty"`
	Ptr    *int            `json:"ptr,omitempty"`
	Nested struct {
		F float64 `json:"f"`
	} `json:"nested,omitzero"`
}

func TestParametersAreDerivedFromTheType(t *testing.T) {
	t.Parallel()
	tool, err := New(Spec{Name: "t"}, func(context.Context, Call, everything) (string, error) { return "", nil })
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(tool.Spec().Parameters, &got); err != nil {
		t.Fatal(err)
	}
	properties := got["properties"].(map[string]any)
	want := map[string]any{
		"name":  map[string]any{"type": "string", "description": "who it is for"},
		"exact": map[string]any{"type": "number"},
		"list":  map[string]any{"type": "array", "items": map[string]any{"type": "number"}},
		"bytes": map[string]any{"type": "string", "description": "base64"},
		"raw":   true,
	}
	for name, w := range want {
		if diff := cmp.Diff(w, properties[name]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got["additionalProperties"] != false || cmp.Diff(got["required"], []any{"name"}) != "" || got["type"] != "object" {
		t.Errorf("got %s", tool.Spec().Parameters)
	}
	if tool.Spec().Source != "go" || tool.Spec().Class != agent.ClassOnce {
		t.Errorf("got %+v", tool.Spec())
	}
}

func TestArgumentsReachTheFunctionExactlyOrNotAtAll(t *testing.T) {
	t.Parallel()
	var got everything
	tool, err := New(Spec{Name: "t"}, func(_ context.Context, _ Call, in everything) (string, error) {
		got = in
		return "ran", nil
	})
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct{ args, want string }{ // want: part of the refusal, "" is accepted
		{`"count":9223372036854775807`, ""},
		{`"count":9223372036854775808`, "does not fit"},
		{`"count":1.0`, "does not fit"},
		{`"small":255`, ""},
		{`"small":256`, "at most 255"},
		{`"small":-1`, "at least 0"},
		{`"inner":-128`, ""},
		{`"inner":128`, "at most 127"},
		{`"amount":0.1`, ""},
		{`"amount":1e2`, ""},
		{`"amount":100.00`, ""},
		{`"amount":-0.0`, ""},
		{`"amount":9007199254740992`, ""},
		{`"amount":9007199254740993`, "would be rounded to 9007199254740992"},
		{`"amount":0.1000000000000000055511151231257827`, "would be rounded to 0.1"},
		{`"amount":1e-400`, "would be rounded to 0"},
		{`"amount":1e400`, "does not fit"},
		{`"narrow":0.1`, ""},
		{`"narrow":16777217`, "would be rounded"},
		{`"exact":123456789012345678901234567890.10`, ""},
		{`"exact":"1"`, "must be number"},
		{`"big":123456789012345678901234567890`, ""},
		{`"raw":{"n":9007199254740993}`, ""},
		{`"any":[9007199254740993,{"x":1e-400}]`, ""},
		{`"bytes":"aGk="`, ""},
		{`"bytes":"%"`, "do not match"},
		{`"list":[0.5,9007199254740993]`, `"/list/1"`},
		{`"list":null`, "must be array"},
		{`"map":{"a":1}`, ""},
		{`"map":{"a":1.5}`, "must be integer"},
		{`"ptr":null`, ""},
		{`"nested":{"f":9007199254740993}`, `"/nested/f"`},
		{`"nested":{"F":1,"f":2}`, "not allowed"},
		{`"Count":1`, "not among its parameters"},
		{`"unknown":1`, "not among its parameters"},
		{`"amount":1e999999999`, "out of range"},
	}
	for _, c := range cases {
		got = everything{}
		_, err := tool.Do(t.Context(), Call{Args: `{"name":"x",` + c.args + `}`})
		if c.want == "" {
			if err != nil || got.Name != "x" {
				t.Errorf("%s: %v", c.args, err)
			}
			continue
		}
		if err == nil || Meaning(err) != OutcomeFailed || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", c.args, err, c.want)
		}
		if got.Name != "" {
			t.Errorf("%s: the function ran", c.args)
		}
	}
	args := `{"any":{"a":[1.50]},"exact":1.50,"name":"x","raw":1.50}`
	if _, err := tool.Do(t.Context(), Call{Args: args}); err != nil {
		t.Fatal(err)
	}
	want := any(map[string]any{"a": []any{json.Number("1.50")}})
	if diff := cmp.Diff(want, got.Any); diff != "" || got.Exact != "1.50" || string(got.Raw) != "1.50" {
		t.Errorf("not verbatim: %+v %s", got, diff)
	}
}

func run[Out any](t *testing.T, class agent.Class, fn func(context.Context, Call, struct{}) (Out, error)) (Result, error) {
	t.Helper()
	tool, err := New(Spec{Name: "t", Class: class}, fn)
	if err != nil {
		t.Fatal(err)
	}
	return tool.Do(t.Context(), Call{Args: "{}"})
}

func TestResultsAreEncodedByTheirType(t *testing.T) {
	t.Parallel()
	check := func(got Result, err error, data, kind string) {
		t.Helper()
		if err != nil || string(got.Data) != data || got.Type != kind {
			t.Errorf("got %q of %q, %v, want %q of %q", got.Data, got.Type, err, data, kind)
		}
	}
	r, err := run(t, "", func(context.Context, Call, struct{}) (string, error) { return "<é>", nil })
	check(r, err, "<é>", "")
	r, err = run(t, "", func(context.Context, Call, struct{}) ([]byte, error) { return []byte{0, 255}, nil })
	check(r, err, "\x00\xff", "application/octet-stream")
	r, err = run(t, "", func(context.Context, Call, struct{}) (any, error) {
		return map[string]any{"a": "<", "n": json.Number("1.50")}, nil
	})
	check(r, err, `{"a":"<","n":1.50}`, "application/json")
	r, err = run(t, "", func(context.Context, Call, struct{}) (*int, error) { return nil, nil })
	check(r, err, "null", "application/json")
	r, err = run(t, "", func(context.Context, Call, struct{}) (Result, error) {
		return Result{Data: []byte("x"), Type: "image/png"}, nil
	})
	check(r, err, "x", "image/png")
	if _, err = run(t, "", func(context.Context, Call, struct{}) (float64, error) { return math.NaN(), nil }); Meaning(err) != OutcomeAmbiguous {
		t.Errorf("a result without JSON form: %v", err)
	}
}

func TestErrorsOfTheFunctionKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	for _, want := range []error{errors.New("plain"), Failed(errors.New("no")), NotSent(errors.New("down"))} {
		_, err := run(t, "", func(context.Context, Call, struct{}) (string, error) { return "half", want })
		if !errors.Is(err, want) || Meaning(err) != Meaning(want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

func TestAPanicEndsOneCall(t *testing.T) {
	t.Parallel()
	for class, want := range map[agent.Class]Outcome{
		agent.ClassRead: OutcomeFailed, agent.ClassOnce: OutcomeAmbiguous, agent.ClassIdempotent: OutcomeAmbiguous,
	} {
		_, err := run(t, class, func(context.Context, Call, struct{}) (string, error) { panic(strings.Repeat("oops ", 1000)) })
		if Meaning(err) != want || len(err.Error()) > 300 || !strings.Contains(err.Error(), `tool "t" panicked: oops`) {
			t.Errorf("%s: %v", class, err)
		}
		var stack interface{ Stack() string }
		if !errors.As(err, &stack) || !strings.Contains(stack.Stack(), "func_test.go") {
			t.Errorf("%s: no stack", class)
		}
	}
	if _, err := run(t, "", func(context.Context, Call, struct{}) (string, error) { panic(nil) }); err == nil {
		t.Error("panic(nil) is no error")
	}
}

func TestNewRefusesWhatIsNotATool(t *testing.T) {
	t.Parallel()
	check := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	_, err := New(Spec{Name: "t"}, func(context.Context, Call, string) (string, error) { return "", nil })
	check(err, "take a struct")
	_, err = New(Spec{Name: "t"}, func(context.Context, Call, map[int]string) (string, error) { return "", nil })
	check(err, "take a struct")
	_, err = New(Spec{Name: "t"}, func(context.Context, Call, struct{ F func() }) (string, error) { return "", nil })
	check(err, "no JSON schema")
	_, err = New[struct{}, string](Spec{Name: "t"}, nil)
	check(err, "no function")
	_, err = New(Spec{Name: "t", Parameters: json.RawMessage(`{}`)}, func(context.Context, Call, struct{}) (string, error) { return "", nil })
	check(err, "leave them empty")
	_, err = New(Spec{Name: "no good"}, func(context.Context, Call, struct{}) (string, error) { return "", nil })
	check(err, "1 to 64")
	_, err = New(Spec{Name: "t"}, func(context.Context, Call, map[string]json.Number) (string, error) { return "", nil })
	if err != nil {
		t.Errorf("a map: %v", err)
	}
}

func FuzzDo(f *testing.F) {
	for _, s := range []string{`{"name":"x"}`, `{"name":"x","amount":0.1,"list":[1e22]}`, `{"name":"x","raw":[1,{"a":null}]}`, `[]`, `{"name":`} {
		f.Add(s)
	}
	tool, err := New(Spec{Name: "t"}, func(context.Context, Call, everything) (string, error) { return "", nil })
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args string) {
		if _, err := tool.Do(t.Context(), Call{Args: args}); err != nil && (Meaning(err) != OutcomeFailed || len(err.Error()) > 3000) {
			t.Errorf("%d bytes, %s: %.300s", len(err.Error()), Meaning(err), err)
		}
	})
}
