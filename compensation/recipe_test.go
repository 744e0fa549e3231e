package compensation

import (
	"strings"
	"testing"
)

func recipe(t *testing.T, args map[string]string) *Recipe {
	t.Helper()
	r, err := New("void", args)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestArgumentsFollowFromTheOriginalsToTheLastDigit(t *testing.T) {
	t.Parallel()
	const args = `{"amount":19.90,"account":123456789012345678901234567890,"lines":[{"id":1.0}],"order":"42"}`
	const result = `{"refund":"re_1","n":9007199254740993.10, "fee": {"b": 1e2, "a": "\u003cé"}}`
	for title, c := range map[string]struct {
		args map[string]string
		want string
	}{
		"none":    {nil, `{}`},
		"places":  {map[string]string{"refund": "result.refund", "amount": "args.amount", "account": `args["account"]`}, `{"account":123456789012345678901234567890,"amount":19.90,"refund":"re_1"}`},
		"deeper":  {map[string]string{"line": "args.lines[0].id", "n": "result.n", "fee": "result.fee"}, `{"fee":{"a":"<é","b":1e2},"line":1.0,"n":9007199254740993.10}`},
		"texts":   {map[string]string{"why": `"undo of order " + args.order`, "fixed": `"x"`, "yes": "true", "list": `[result.refund]`}, `{"fixed":"x","list":["re_1"],"why":"undo of order 42","yes":true}`},
		"choices": {map[string]string{"id": `has(result.id) ? result.id : result.refund`}, `{"id":"re_1"}`},
	} {
		got, err := recipe(t, c.args).Args(args, result)
		if err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", title, got, err, c.want)
		}
	}
}

func TestWhatCannotBeMadeIsAnErrorAndNeverLeftOut(t *testing.T) {
	t.Parallel()
	for title, c := range map[string]struct{ expression, args, result, want string }{
		"no such argument":       {"args.none", `{}`, `{}`, `argument "a": args has no "none"`},
		"no such member":         {"result.refund.id", `{}`, `{"refund":"re_1"}`, `result has no "id"`},
		"a result that is text":  {"result.refund", `{}`, `re_1 is done`, "the original's result: it is not JSON"},
		"no result":              {"result", `{}`, ``, "the original's result: it is not JSON"},
		"two results":            {"result.refund", `{}`, `{"refund":1} {"refund":2}`, "something follows"},
		"a number to compute by": {"args.n * 2", `{"n":123456789012345678901234567890}`, `{}`, "more digits"},
		"no JSON":                {`b"x"`, `{}`, `{}`, "no JSON form"},
		"arguments":              {`args.n`, `{`, `{}`, "the original's arguments: it is not JSON"},
		"too deep":               {`result`, `{}`, strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "compensation by"},
		"case twins":             {`result`, `{}`, `{"a":1,"A":2}`, "compensation by"},
		"endless":                {`args.l.map(a, args.l.map(b, args.l.map(c, a + b + c)))`, `{"l":[` + strings.Repeat("1,", 999) + `1]}`, `{}`, "cost"},
	} {
		got, err := recipe(t, map[string]string{"a": c.expression}).Args(c.args, c.result)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %.80s, %v, want an error with %q", title, got, err, c.want)
		}
	}
}

func TestOnlyWhatLooksAtTheResultNeedsItToBeJSON(t *testing.T) {
	t.Parallel()
	got, err := recipe(t, map[string]string{"order": "args.order"}).Args(`{"order":"42"}`, "the refund was made")
	if err != nil || got != `{"order":"42"}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestBadExpressionsAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "args.", "key", `args.a + `, `"a" - 1`} {
		if _, err := New("void", map[string]string{"a": bad}); err == nil || !strings.Contains(err.Error(), `compensation by "void": argument "a"`) {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

// Whatever a destination answered, the arguments are canonical or there is an error.
func FuzzArgs(f *testing.F) {
	f.Add(`{"a":1.10}`, `{"a":{"b":[1e400]}}`)
	f.Add(`{"a":null}`, `{"a":"\ud800"}`)
	f.Add(`{"a":{"x":1,"x":2}}`, `[]`)
	r, err := New("void", map[string]string{"x": "args.a", "y": `has(result.a) ? result.a : args.a`})
	if err != nil {
		f.Fatal(err)
	}
	same, err := New("void", map[string]string{"x": "args.x", "y": "args.y"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args, result string) {
		text, err := r.Args(args, result)
		if err != nil {
			return
		}
		if again, err := same.Args(text, ""); err != nil || again != text {
			t.Errorf("%s becomes %s, %v", text, again, err)
		}
	})
}
