package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxExponent bounds a number's decimal exponent. Comparing numbers exactly means to write them out, and
// 1e999999999 would need a gigabyte for that.
const maxExponent = 1000

// schema checks arguments. It is safe for concurrent use.
type schema struct {
	compiled   *jsonschema.Schema
	properties []string // of the top level, in no order
	required   []string // of the top level
}

// base is where a schema's own references start. Nothing is ever loaded from it.
const base = "https://holdfast.invalid/parameters.json"

// compile compiles a tool's parameters. The schema may come from a server that nobody trusts: it loads
// nothing from elsewhere, and a panic of the compiler is a broken schema.
func compile(s Spec) (_ *schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("tool %q: its parameters are not a usable JSON schema: %v", s.Name, p)
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(s.Parameters))
	if err != nil {
		return nil, fmt.Errorf("tool %q: its parameters are not JSON: %w", s.Name, err)
	}
	top, ok := doc.(map[string]any)
	if !ok || top["type"] != "object" {
		return nil, fmt.Errorf(`tool %q: its parameters must be a JSON schema with "type": "object"`, s.Name)
	}
	if n, ok := tooLarge(doc); ok {
		return nil, fmt.Errorf("tool %q: its parameters hold the number %.40s, which is beyond 1e±%d", s.Name, n, maxExponent)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(patternEngine)
	ignoreFormats(c)
	if err := c.AddResource(base, doc); err != nil {
		return nil, fmt.Errorf("tool %q: its parameters are not a usable JSON schema: %w", s.Name, err)
	}
	compiled, err := c.Compile(base)
	if err != nil {
		return nil, fmt.Errorf("tool %q: its parameters are not a usable JSON schema: %w", s.Name, err)
	}
	out := &schema{compiled: compiled, required: compiled.Required}
	if p, ok := top["properties"].(map[string]any); ok {
		for name := range p {
			out.properties = append(out.properties, name)
		}
	}
	return out, nil
}

// validate checks canonical arguments; the error's text is for the model.
func (s *schema) validate(args string) error {
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(args))
	if err != nil {
		return fmt.Errorf("the arguments are not JSON: %w", err)
	}
	if n, ok := tooLarge(v); ok {
		return fmt.Errorf("the number %.40s is out of range: use one between 1e-%d and 1e+%d", n, maxExponent, maxExponent)
	}
	err = s.compiled.Validate(v)
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return s.explain(invalid)
	}
	return err
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%.200q is not loaded; put what it holds under $defs", url)
}

// ignoreFormats turns off what "format" asserts in drafts before 2019-09: it is a hint everywhere, as in
// the later ones. Only "regex" cannot be turned off.
func ignoreFormats(c *jsonschema.Compiler) {
	for _, name := range []string{
		"json-pointer", "relative-json-pointer", "uuid", "duration", "period", "ipv4", "ipv6", "hostname", "email",
		"date", "time", "date-time", "uri", "iri", "uri-reference", "iri-reference", "uri-template", "semver",
	} {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(any) error { return nil }})
	}
}

// anything is a pattern that only the destination can check.
type anything string

func (anything) MatchString(string) bool { return true }
func (a anything) String() string        { return string(a) }

// patternEngine compiles a pattern, or lets everything match where it uses what ECMA 262 has and Go's
// engine has not (look-around, back-references): its owner checks it anyhow. Other faults are faults.
func patternEngine(pattern string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(pattern)
	var fault *syntax.Error
	if errors.As(err, &fault) && (fault.Code == syntax.ErrInvalidPerlOp || fault.Code == syntax.ErrInvalidEscape) {
		return anything(pattern), nil
	}
	if err != nil {
		return nil, err
	}
	return re, nil
}

// tooLarge returns a number in v whose exponent is beyond maxExponent.
func tooLarge(v any) (string, bool) {
	switch v := v.(type) {
	case json.Number:
		i := strings.IndexAny(string(v), "eE")
		if i < 0 {
			return "", false
		}
		e, err := strconv.Atoi(string(v[i+1:]))
		return string(v), err != nil || e > maxExponent || e < -maxExponent
	case []any:
		for _, x := range v {
			if n, ok := tooLarge(x); ok {
				return n, ok
			}
		}
	case map[string]any:
		for _, x := range v {
			if n, ok := tooLarge(x); ok {
				return n, ok
			}
		}
	}
	return "", false
}
