package expr

import (
	"errors"
	"strings"
	"testing"
)

func language(t *testing.T) *Language {
	t.Helper()
	l, err := New(map[string]Type{"args": Any, "body": Any, "status": Int, "text": Text, "error": Bool})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func input(t *testing.T, args string) Input {
	t.Helper()
	d, err := JSON([]byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return Input{"args": d, "body": Null(), "status": Of(404), "text": Of("no"), "error": Of(false)}
}

func TestConditionsHoldOrDoNotOrSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	l := language(t)
	for text, want := range map[string]string{
		`status == 404`: "true",
		`status == 404 && !error && text == "no"`: "true",
		`body == null`:                             "true",
		`body.refund == "re_1"`:                    "error",
		`has(args.none)`:                           "false",
		`args.none == 1`:                           "error",
		`args.none == 1 || status == 404`:          "true", // CEL's own rule: one true side is enough
		`args.amount > 100`:                        "true",
		`args.amount == 100.5`:                     "true",
		`args.whole == 9007199254740993`:           "true",
		`args.whole == 9007199254740992`:           "false",
		`args.huge == 1`:                           "error",
		`args.huge > 1`:                            "error",
		`args.tiny > 0.0`:                          "error",
		`args.list.exists(x, x.id == "b")`:         "true",
		`args.list.size() == 2`:                    "true",
		`args.list[5].id == "b"`:                   "error",
		`args.order`:                               "error", // not a bool, seen only at run time
		`args.order.startsWith("4")`:               "true",
		`"x" in args`:                              "false",
		`args.list.all(x, args.list.all(y, true))`: "true",
	} {
		c, err := l.Condition(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		held, err := c.Holds(input(t, `{"order":"42","amount":100.50,"whole":9007199254740993,
			"huge":123456789012345678901234567890,"tiny":1e-999,"list":[{"id":"a"},{"id":"b"}]}`))
		got := map[bool]string{true: "true", false: "false"}[held]
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%s: %s (%v), want %s", text, got, err, want)
		}
	}
}

func TestExpressionsAreCheckedWhenTheyAreCompiled(t *testing.T) {
	t.Parallel()
	l := language(t)
	for text, want := range map[string]string{
		``:                "the expression is empty",
		`status ==`:       "line 1, column 10",
		`status == "404"`: "line 1, column 8",
		`statuss == 404`:  "undeclared reference to 'statuss'",
		`status`:          "is a int and not a condition",
	} {
		if _, err := l.Condition(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", text, err, want)
		}
	}
}

func TestAPlaceInTheInputIsGivenAsItIsWritten(t *testing.T) {
	t.Parallel()
	l := language(t)
	for text, want := range map[string]string{
		`args.amount`:                          `19.90`,
		`args["amount"]`:                       `19.90`,
		`args.huge`:                            `123456789012345678901234567890`,
		`args.lines[1].n`:                      `1e400`,
		`args.lines`:                           `[1,{"n":1e400}]`,
		`args.text`:                            `"<a>"`,
		`args`:                                 `{"amount":19.90,"huge":123456789012345678901234567890,"lines":[1,{"n":1e400}],"text":"<a>"}`,
		`status`:                               `404`,
		`text`:                                 `"no"`,
		`body`:                                 `null`,
		`"void of " + args.text`:               `"void of <a>"`,
		`{"a": [args.lines[0] + 1, 2u, true]}`: `{"a":[2,2,true]}`,
		`has(args.amount) ? args.amount : 0.0`: `19.9`,
		`has(args.huge) ? args.huge : 0`:       `error: more digits than can be computed with`,
		`[args]`:                               `error: more digits than can be computed with`,
		`args.none`:                            `error: args has no "none"`,
		`args.lines[2]`:                        `error: args has no 2`,
		`args.text.more`:                       `error: args has no "more"`,
		`1.0 / 0.0`:                            `error: no finite number`,
		`b"x"`:                                 `error: no JSON form`,
		`{1: 2}`:                               `error: as the name of a member`,
		`body.x`:                               `error: body has no "x"`,
	} {
		v, err := l.Value(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		raw, err := v.JSON(input(t, `{"text":"<a>","lines":[1,{"n":1e400}],"amount":19.90,"huge":123456789012345678901234567890}`))
		wrong, failing := strings.CutPrefix(want, "error: ")
		switch {
		case failing && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%s: %s, %v, want an error with %q", text, raw, err, wrong)
		case !failing && (err != nil || string(raw) != want):
			t.Errorf("%s: %s, %v, want %s", text, raw, err, want)
		}
	}
}

func TestWhatIsMissingFailsOnlyWhatLooksAtIt(t *testing.T) {
	t.Parallel()
	l := language(t)
	in := input(t, `{"order":"42"}`)
	in["body"] = Missing(errors.New("the result is not JSON"))
	for text, fails := range map[string]bool{
		`args.order`: false, `body`: true, `body.id`: true, `"" + body.id`: true, `has(body.id) ? "a" : "b"`: true,
	} {
		v, err := l.Value(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.JSON(in); fails != (err != nil && strings.Contains(err.Error(), "is not JSON")) {
			t.Errorf("%s: error %v, want one %t", text, err, fails)
		}
	}
}

func TestAnEvaluationThatWouldTakeTooLongIsAnError(t *testing.T) {
	t.Parallel()
	l := language(t)
	c, err := l.Condition(`args.all(a, args.all(b, args.all(c, args.all(d, a + b + c + d >= 0))))`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Holds(input(t, `[`+strings.Repeat("1,", 999)+`1]`))
	if err == nil || !strings.Contains(err.Error(), "cost") {
		t.Errorf("error %v, want one about the cost", err)
	}
}

func TestObjectsNameTheMemberThatCannotBeMade(t *testing.T) {
	t.Parallel()
	l := language(t)
	if _, err := l.Object(map[string]string{"a": "args.x", "b": "argh.x"}); err == nil || !strings.Contains(err.Error(), `argument "b"`) {
		t.Errorf(`error %v, want one about argument "b"`, err)
	}
	o, err := l.Object(map[string]string{"z": "args.x", "a": `"<" + text`})
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := o.JSON(input(t, `{"x":1.0}`)); err != nil || string(raw) != `{"a":"<no","z":1.0}` {
		t.Errorf("%s, %v", raw, err)
	}
	if _, err := o.JSON(input(t, `{}`)); err == nil || !strings.Contains(err.Error(), `argument "z": args has no "x"`) {
		t.Errorf(`error %v, want one about argument "z"`, err)
	}
}

func TestOnlyOneJSONValueOfABoundedSizeIsLookedAt(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{``, `{`, `{} {}`, `nonsense`, `"` + strings.Repeat("x", MaxJSON) + `"`} {
		if _, err := JSON([]byte(bad)); err == nil {
			t.Errorf("%.20q... is taken", bad)
		}
	}
}

// Whatever a destination answers, a plain place gives the bytes that stand there and nothing panics.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{"a":1.10}`, `[1e999,{"a":null}]`, `{"a":{"a":"\ud800"}}`, `-0`, `{"a":18446744073709551616}`, `{"a":1,"a":2}`} {
		f.Add(s, `args.a`)
	}
	f.Add(`{"a":[1]}`, `args.a.exists(x, x > 1) || string(args.a[0]) == "1"`)
	l, err := New(map[string]Type{"args": Any})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text, expression string) {
		d, err := JSON([]byte(text))
		if err != nil || len(expression) > 200 {
			return
		}
		v, err := l.Value(expression)
		if err != nil {
			return
		}
		raw, err := v.JSON(Input{"args": d})
		if err != nil {
			return
		}
		if _, err := JSON(raw); err != nil {
			t.Errorf("%s of %s is %s: %v", expression, text, raw, err)
		}
	})
}
