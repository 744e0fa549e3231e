package tool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func setOf(t *testing.T, parameters string) *Set {
	t.Helper()
	s, err := NewSet(declared(t, Spec{Name: "t", Parameters: json.RawMessage(parameters)}))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestValidateTellsTheModelWhatToMend(t *testing.T) {
	t.Parallel()
	s := setOf(t, `{"type":"object","required":["to","amount"],"additionalProperties":false,"properties":{
		"to":{"type":"string","minLength":2,"pattern":"^[a-z]+$"},
		"amount":{"type":"number","minimum":0.01,"maximum":9007199254740993},
		"more":{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":10,"multipleOf":3},
		"kind":{"enum":["a","b"]},
		"items":{"type":"array","maxItems":2,"uniqueItems":true,"items":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}},
		"either":{"anyOf":[{"type":"string"},{"type":"integer"}]},
		"never":false,
		"when":{"type":"string","format":"date-time"}}}`)
	ok := `"to":"acme","amount":1`
	cases := map[string]string{ // arguments: part of the text; "" is valid
		`{` + ok + `}`: "",
		`{"to":"acme","amount":9007199254740993}`:         "",
		`{"to":"acme","amount":9007199254740994}`:         `at "/amount": must be at most 9007199254740993`,
		`{"to":"acme","amount":0.0099999999999999999999}`: `must be at least 0.01`,
		`{}`:                                         `"amount", "to" are missing`,
		`{"to":"acme"}`:                              `"amount" is missing`,
		`{` + ok + `,"Amount":2}`:                    `"Amount" is not among its parameters, which are "amount", "either", "items", "kind", "more", "never", "to", "when"`,
		`{"to":7,"amount":1}`:                        `at "/to": must be string, not number`,
		`{"to":"A","amount":1}`:                      `must match the pattern "^[a-z]+$"`,
		`{` + ok + `,"more":1.5}`:                    `must be integer`,
		`{` + ok + `,"more":3.0}`:                    "",
		`{` + ok + `,"more":4}`:                      `must be a multiple of 3`,
		`{` + ok + `,"more":12}`:                     `must be less than 10`,
		`{` + ok + `,"more":0}`:                      `must be more than 0`,
		`{` + ok + `,"kind":"c"}`:                    `at "/kind": value must be one of 'a', 'b'`,
		`{` + ok + `,"items":[{"n":1},{}]}`:          `at "/items/1": "n" is missing`,
		`{` + ok + `,"items":[{"n":1},{"n":1.0}]}`:   `items 0 and 1 are equal`,
		`{` + ok + `,"items":null}`:                  `at "/items": must be array, not null`,
		`{` + ok + `,"either":true}`:                 `at "/either": must be string, not boolean`,
		`{` + ok + `,"never":1}`:                     `must not be there`,
		`{` + ok + `,"when":"tomorrow"}`:             "", // a format is a hint
		`{` + ok + `,"more":1e999999999}`:            `1e999999999 is out of range`,
		`{"to":"acme","amount":1e-400}`:              `must be at least 0.01`,
		`{` + ok + `,"more":1e99999999999999999999}`: `out of range`,
		`[1]`:         `must be object, not array`,
		`{"to":"acme`: `not JSON`,
	}
	for args, want := range cases {
		err := s.Validate("t", args)
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", args, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", args, err, want)
		}
	}
}

func TestValidateBoundsWhatItSays(t *testing.T) {
	t.Parallel()
	s := setOf(t, `{"type":"object","additionalProperties":{"type":"string","maxLength":3}}`)
	var b strings.Builder
	for i := range 2000 {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(fmt.Sprintf(`"%d%s":1`, i, strings.Repeat("\u202e", 200)))
	}
	err := s.Validate("t", "{"+b.String()+"}")
	if err == nil || len(err.Error()) > 2000 || !strings.Contains(err.Error(), "and 1995 more") {
		t.Fatalf("%d bytes: %.200s", len(err.Error()), err)
	}
	if strings.Contains(err.Error(), "\u202e") {
		t.Error("foreign text is repeated as it is")
	}
	again := s.Validate("t", "{"+b.String()+"}")
	if again.Error() != err.Error() {
		t.Error("the text differs from one time to the next")
	}
}

func TestABrokenSchemaIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	cases := map[string]string{ // parameters: part of the text; "" is fine
		`[]`:                         `"type": "object"`,
		`true`:                       `"type": "object"`,
		`{"properties":{}}`:          `"type": "object"`,
		`{"type":["object","null"]}`: `"type": "object"`,
		`{"type":"object","properties":{"a":{"type":"strin"}}}`:                                          `not a usable JSON schema`,
		`{"type":"object","required":"a"}`:                                                               `not a usable JSON schema`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`:                                   `not a usable JSON schema`,
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/x.json"}}}`:                     `not loaded`,
		`{"type":"object","properties":{"a":{"$ref":"file:///etc/passwd"}}}`:                             `not loaded`,
		`{"type":"object","properties":{"a":{"$ref":"other.json"}}}`:                                     `not loaded`,
		`{"type":"object","$schema":"https://example.com/draft"}`:                                        `not loaded`,
		`{"type":"object","properties":{"a":{"pattern":"(["}}}`:                                          `not a usable JSON schema`,
		`{"type":"object","properties":{"a":{"pattern":"^(?!x)(a)\\1$"}}}`:                               ``, // ECMA only
		`{"type":"object","properties":{"a":{"multipleOf":1e-999999999}}}`:                               `beyond`,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{}}}`:                     ``,
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`:                          ``,
		`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","id":"http://x.example/"}`: ``,
	}
	for parameters, want := range cases {
		_, err := NewSet(declared(t, Spec{Name: "t", Parameters: json.RawMessage(parameters)}))
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", parameters, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `tool "t"`) {
			t.Errorf("%s: %v does not say %q", parameters, err, want)
		}
	}
}

func TestFormatsAreHintsInEveryDraft(t *testing.T) {
	t.Parallel()
	for _, draft := range []string{"http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"} {
		s := setOf(t, `{"$schema":"`+draft+`","type":"object","properties":{"a":{"format":"email"},"b":{"format":"no-such"}}}`)
		if err := s.Validate("t", `{"a":"x","b":"y"}`); err != nil {
			t.Errorf("%s: %v", draft, err)
		}
	}
}

func FuzzValidate(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer","minimum":1e3}}}`, `{"a":1}`)
	f.Add(`{"type":"object","patternProperties":{"^a":{"enum":[1,"x",null]}},"minProperties":1}`, `{"b":1e5}`)
	f.Add(`{"type":"object","$ref":"#"}`, `{}`)
	f.Add(`{"type":"object","properties":{"a":{"multipleOf":0}}}`, `{"a":1}`)
	f.Add(`{"type":"object","dependentRequired":{"a":["b"]},"propertyNames":{"maxLength":1}}`, `{"a":[[]],"xx":1}`)
	f.Fuzz(func(t *testing.T, parameters, args string) {
		spec, err := Declare(Spec{Name: "t", Parameters: json.RawMessage(parameters)}, nil)
		if err != nil {
			return
		}
		s, err := NewSet(stub{spec})
		if err != nil {
			return
		}
		if err := s.Validate("t", args); err != nil && len(err.Error()) > 2000 {
			t.Errorf("%d bytes of error", len(err.Error()))
		}
	})
}
