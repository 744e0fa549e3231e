package approval_test

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/gowebpki/jcs"

	"github.com/holdfast-run/holdfast/approval"
)

type canonCase struct {
	ID    string  `json:"id"`
	Want  string  `json:"want"`
	A     *string `json:"a"`
	AHex  string  `json:"a_hex"`
	B     *string `json:"b"`
	ATool string  `json:"a_tool"`
	BTool string  `json:"b_tool"`
}

func (c canonCase) a(t *testing.T) []byte {
	if c.A != nil {
		return []byte(*c.A)
	}
	b, err := hex.DecodeString(c.AHex)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func canonCases(t *testing.T) []canonCase {
	t.Helper()
	f, err := os.Open("../tests/cases/canon.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []canonCase
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var c canonCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	if err := lines.Err(); err != nil || len(out) < 27 {
		t.Fatalf("%d cases, %v", len(out), err)
	}
	return out
}

func TestCanonicalAndDigestDoAsTheCasesWant(t *testing.T) {
	t.Parallel()
	for _, c := range canonCases(t) {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			a, err := approval.Canonical(c.a(t))
			if c.Want == "reject" {
				if err == nil {
					t.Fatalf("accepted as %s", a)
				}
				checkText(t, err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			b, err := approval.Canonical([]byte(*c.B))
			if err != nil {
				t.Fatal(err)
			}
			x := approval.Action{Tool: c.ATool, Args: a}.Digest()
			y := approval.Action{Tool: c.BTool, Args: b}.Digest()
			if c.Want == "same" && x != y || c.Want == "different" && x == y {
				t.Errorf("want %s: %s and %s", c.Want, a, b)
			}
			if (x == y) != (a == b && c.ATool == c.BTool) {
				t.Error("equal digests do not mean equal bytes to the tool")
			}
		})
	}
}

// checkText holds what every error for the model must be: bounded, printable ASCII, typed.
func checkText(t *testing.T, err error) {
	t.Helper()
	var arg *approval.ArgumentError
	if !errors.As(err, &arg) {
		t.Errorf("%T is no ArgumentError", err)
	}
	text := err.Error()
	if len(text) > 500 {
		t.Errorf("%d bytes of error", len(text))
	}
	for _, r := range text {
		if r < ' ' || r > '~' {
			t.Errorf("%q holds %q", text, r)
		}
	}
}

func TestCanonicalText(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"":                            `{}`,
		" { } ":                       `{}`,
		`{"b":[1, 2.50,{}],"a":null}`: `{"a":null,"b":[1,2.50,{}]}`,
		`{"n":[0,-0,-0.0,1E+2,1e-999999999,12345678901234567890]}`: `{"n":[0,-0,-0.0,1E+2,1e-999999999,12345678901234567890]}`,
		`{"s":"\u0041\/\u001f\u007f\b\f\n\r\t\"\\\u2028<>&"}`:      "{\"s\":\"A/\\u001f\x7f\\b\\f\\n\\r\\t\\\"\\\\\u2028<>&\"}",
		`{"s":"\ud83d\uDE00"}`:           "{\"s\":\"\U0001f600\"}",
		`{"s":"\ufffd` + "\ufffd" + `"}`: "{\"s\":\"\ufffd\ufffd\"}",
		"{\"\uffff\":1,\"\U0010ffff\":2,\"\ud7ff\":3,\"a\U00010000\":4,\"a\uf8ff\":5}": "{\"a\U00010000\":4,\"a\uf8ff\":5,\"\ud7ff\":3,\"\U0010ffff\":2,\"\uffff\":1}",
		"{\"\\ue000\":1,\"\U0001f600\":2}":                                             "{\"\U0001f600\":2,\"\ue000\":1}",
		`{"b":{"z":true,"y":false},"B1":{}}`:                                           `{"B1":{},"b":{"y":false,"z":true}}`,
		`{"a":1,"":2,"aa":3}`:                                                          `{"":2,"a":1,"aa":3}`,
		"{\"a\"\r\n:\t1 , \"b\" : [ ] }":                                               `{"a":1,"b":[]}`,
		`{"x":{"a":1},"y":{"a":1,"b":[{}]} }`:                                          `{"x":{"a":1},"y":{"a":1,"b":[{}]}}`,
	}
	for in, want := range cases {
		got, err := approval.Canonical([]byte(in))
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v, want %q", in, got, err, want)
		}
	}
}

func TestCanonicalRefusesAndSaysWhatToMend(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 5000)
	cases := map[string]string{ // text: part of the error
		`null`:                      `must be a JSON object`,
		`[]`:                        `must be a JSON object`,
		`"hello"`:                   `must be a JSON object`,
		`"{\"a\":1}"`:               `not in quotes and not escaped`,
		`" \n{\"a\":1}"`:            `not in quotes and not escaped`,
		` `:                         `cut off`,
		`{`:                         `cut off`,
		`{"a"`:                      `cut off`,
		`{"a":`:                     `cut off`,
		`{"a":1`:                    `cut off`,
		`{"a":1,`:                   `cut off`,
		`{"a":[1`:                   `cut off`,
		`{"a":"x`:                   `the string is cut off`,
		`{"a":"x\`:                  `not an escape`,
		`{"a":tru`:                  `not a JSON value`,
		`{"a":1}x`:                  `something follows`,
		`{"a":1}{"a":2}`:            `at byte 7`,
		`{"a":1,}`:                  `no comma after the last`,
		`{a:1}`:                     `names in double quotes`,
		`{'a':1}`:                   `names in double quotes`,
		`{"a" 1}`:                   `followed by ":"`,
		`{"a":1 "b":2}`:             `followed by "," or "}"`,
		`{"a":[1 2]}`:               `followed by "," or "]"`,
		`{"a":[1}`:                  `followed by "," or "]"`,
		`{"a":[1,]}`:                `not a JSON value`,
		`{"a":01}`:                  `without leading zeros`,
		`{"a":+1}`:                  `not a JSON value`,
		`{"a":1.}`:                  `not a JSON number`,
		`{"a":.5}`:                  `not a JSON value`,
		`{"a":-}`:                   `not a JSON number`,
		`{"a":1e}`:                  `not a JSON number`,
		`{"a":1_000}`:               `not a JSON number`,
		`{"a":NaN}`:                 `not a JSON value`,
		`{"a":"\q"}`:                `not an escape`,
		`{"a":"\u12"}`:              `four hexadecimal`,
		`{"a":"\u12g4"}`:            `four hexadecimal`,
		`{"a":"\ude00\ud83d"}`:      `surrogate`,
		`{"a":"\ud83d\ud83d"}`:      `surrogate`,
		`{"a":"\ud83dx"}`:           `surrogate`,
		"{\"a\":\"\xed\xa0\x80\"}":  `not UTF-8`, // a surrogate in bytes
		"{\"a\":\"\xc0\x80\"}":      `not UTF-8`, // overlong
		"{\"a\":\"\xf4\x90\x80\x80": `not UTF-8`, // beyond U+10FFFF
		"{\"a\xff\":1}":             `not UTF-8`,
		"{\"a\":\"\n\"}":            `control character`,
		"{\"a\":1}\x00":             `something follows`,
		"\xef\xbb\xbf{}":            `not a JSON value`, // a byte order mark
		`{"a":{"b":1,"b":2}}`:       `the name "b" is there twice`,
		`{"a":1,"\u0061":2}`:        `the name "a" is there twice`,
		`{"a":1,"x":2,"A":3}`:       `"a" and "A" differ only in case`,
		"{\"\u212a\":1,\"k\":2}":    `differ only in case`, // the Kelvin sign folds to k
		"{\"\u017f\":1,\"S\":2}":    `differ only in case`, // long s
		`{"` + long + `":1,"K":1,"` + strings.ToUpper(long) + `":1}`: `differ only in case`,
		`{"a":` + strings.Repeat("9", approval.MaxNumber+1) + `}`:    `characters`,
		`{"a":"` + strings.Repeat("x", approval.MaxArgs) + `"}`:      `send less`,
		`{"a":` + nested(20000) + `}`:                                `levels deep`,
		`{"a":` + nested(approval.MaxDepth) + `}`:                    `levels deep`,
		strings.Repeat("[", 1<<20):                                   `levels deep`,
		strings.Repeat(`{"a":`, 1<<17):                               `levels deep`,
	}
	for in, want := range cases {
		got, err := approval.Canonical([]byte(in))
		if err == nil {
			t.Errorf("%.80q: accepted as %.80q", in, got)
			continue
		}
		if checkText(t, err); !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %q does not say %q", in, err, want)
		}
	}
	for _, in := range []string{
		`{"a":` + nested(approval.MaxDepth-1) + `}`,
		`{"a":[` + strings.Repeat("[],", 2*approval.MaxDepth) + `{}]}`,
	} {
		if _, err := approval.Canonical([]byte(in)); err != nil {
			t.Errorf("%.20s... is not too deep: %v", in, err)
		}
	}
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{
		"", "{}", `{"b":1,"a":[1.50,-0,1E+9,"\u00e9\ud83d\ude00"]}`, `{"a":"\ud835"}`, "{\"\xff\":1}", `{"k":{"K":1},"x":nul}`,
		"{\"\U0001f600\":1,\"\ue000\":2}", `"{\"a\":1}"`, `{"a":"\b\f\n\r\t\u0000\u001f\/"}`, `{"a":1}{"b":2}`, `{"s":1,"ſ":2}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := approval.Canonical(raw)
		if err != nil {
			checkText(t, err)
			return
		}
		if again, err := approval.Canonical([]byte(got)); err != nil || again != got {
			t.Fatalf("not stable: %q, then %q, %v", got, again, err)
		}
		if !json.Valid([]byte(got)) || !utf8.ValidString(got) {
			t.Fatalf("%q is not JSON in UTF-8", got)
		}
		if len(raw) == 0 {
			return
		}
		if diff := cmp.Diff(decode(t, raw), decode(t, []byte(got))); diff != "" {
			t.Fatal(diff)
		}
		// Without numbers, in which it differs on purpose, RFC 8785's implementation is the oracle.
		if !bytes.ContainsAny(raw, "0123456789") {
			if want, err := jcs.Transform(raw); err != nil || string(want) != got {
				t.Fatalf("got %q, RFC 8785 wants %q, %v", got, want, err)
			}
		}
		if _, err := approval.IntentDigest("t", got, nil, ""); err != nil {
			t.Fatal(err)
		}
	})
}

func decode(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
