package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

// stub is a tool written by hand.
type stub struct{ spec Spec }

func (s stub) Spec() Spec                               { return s.spec }
func (s stub) Do(context.Context, Call) (Result, error) { return Result{}, nil }

func declared(t *testing.T, s Spec) stub {
	t.Helper()
	s, err := Declare(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stub{s}
}

func TestDeclareFillsInTheMostCarefulDefaults(t *testing.T) {
	t.Parallel()
	got, err := Declare(Spec{Name: "pay"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := Spec{
		Name: "pay", Class: agent.ClassOnce, Timeout: DefaultTimeout, Risk: agent.RiskMedium, Version: got.Version,
		Parameters: json.RawMessage(emptyParameters),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err = Declare(Spec{Name: "pay", Class: agent.ClassIdempotent}, nil); err != nil || got.Window != DefaultWindow {
		t.Errorf("window %s, %v", got.Window, err)
	}
}

func TestVersionChangesWithEveryPartOfTheDeclaration(t *testing.T) {
	t.Parallel()
	base := Spec{Name: "pay", Class: agent.ClassIdempotent, Parameters: json.RawMessage(`{"type":"object","maximum":9007199254740992}`)}
	seen := map[agent.Digest]string{}
	check := func(name string, s Spec, more any) {
		d := declared(t, s)
		if more != nil {
			var err error
			if d.spec, err = Declare(s, more); err != nil {
				t.Fatal(err)
			}
		}
		if other, ok := seen[d.spec.Version]; ok {
			t.Errorf("%s has the version of %s", name, other)
		}
		seen[d.spec.Version] = name
	}
	check("base", base, nil)
	for name, change := range map[string]func(*Spec){
		"name":        func(s *Spec) { s.Name = "refund" },
		"description": func(s *Spec) { s.Description = "x" },
		"parameters":  func(s *Spec) { s.Parameters = json.RawMessage(`{"type":"object","maximum":9007199254740993}`) },
		"class":       func(s *Spec) { s.Class = agent.ClassOnce },
		"window":      func(s *Spec) { s.Window = time.Hour },
		"timeout":     func(s *Spec) { s.Timeout = time.Hour },
		"source":      func(s *Spec) { s.Source = "go" },
		"identity":    func(s *Spec) { s.Identity = []string{"order"} },
		"resource":    func(s *Spec) { s.Resource = "order/{order}" },
		"risk":        func(s *Spec) { s.Risk = agent.RiskLow },
		"harm":        func(s *Spec) { s.Irreversible = true },
		"undo":        func(s *Spec) { s.Compensate = &Compensation{Tool: "void"} },
		"undo's":      func(s *Spec) { s.Compensate = &Compensation{Tool: "void", Args: map[string]string{"a": "args.a"}} },
		"delay":       func(s *Spec) { s.AbsentAfter = time.Minute },
	} {
		s := base
		change(&s)
		check(name, s, nil)
	}
	check("more", base, "https://example.com")
	again := declared(t, Spec{Name: "pay", Class: agent.ClassIdempotent, Parameters: json.RawMessage(" { \"type\":\n\"object\",\"maximum\":9007199254740992} ")})
	if seen[again.spec.Version] != "base" {
		t.Error("white space in the schema changed the version")
	}
}

// Keys are made of versions: a new field of a declaration must not change the keys of tools that do not use it.
func TestTheVersionOfAnOldDeclarationStaysWhatItWas(t *testing.T) {
	t.Parallel()
	const before = "ab9dc53cc51e8553ab0b8813c5ec382cc72f85a4fb361baf4a9899bb3e682f46"
	s := Spec{Name: "pay", Class: agent.ClassIdempotent, Identity: []string{"order"}, Resource: "order/{order}"}
	if got := declared(t, s).spec.Version; got != before {
		t.Errorf("version %s, want %s", got, before)
	}
	s.Risk = agent.RiskMedium // which it has anyhow
	if got := declared(t, s).spec.Version; got != before {
		t.Errorf("with the default risk: version %s, want %s", got, before)
	}
}

func TestDeclareRefusesWhatCannotBeATool(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec Spec
		want string
	}{
		"no name":            {Spec{}, "1 to 64"},
		"space in name":      {Spec{Name: "pay me"}, "1 to 64"},
		"cyrillic name":      {Spec{Name: "p\u0430y"}, "1 to 64"},
		"long name":          {Spec{Name: strings.Repeat("x", 65)}, "1 to 64"},
		"name and line end":  {Spec{Name: "pay\n"}, "1 to 64"},
		"class":              {Spec{Name: "pay", Class: "maybe"}, "unknown class"},
		"window of a once":   {Spec{Name: "pay", Window: time.Hour}, "only a tool of class idempotent"},
		"negative window":    {Spec{Name: "pay", Class: agent.ClassIdempotent, Window: -1}, "negative"},
		"negative timeout":   {Spec{Name: "pay", Timeout: -1}, "negative"},
		"parameters no JSON": {Spec{Name: "pay", Parameters: json.RawMessage(`{`)}, "not JSON"},
	} {
		if _, err := Declare(c.spec, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
	if _, err := Declare(Spec{Name: "pay"}, func() {}); err == nil {
		t.Error("a declaration without JSON form was taken")
	}
	if _, err := Declare(Spec{Name: strings.Repeat("x", 64)}, nil); err != nil {
		t.Errorf("64 characters: %v", err)
	}
}

func TestSetRefusesWhatItCouldNotUseLater(t *testing.T) {
	t.Parallel()
	a, b := declared(t, Spec{Name: "b"}), declared(t, Spec{Name: "a"})
	s, err := NewSet(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(s.Names(), " "); got != "b a" {
		t.Errorf("names are %q", got)
	}
	if _, ok := s.Lookup("B"); ok {
		t.Error("a name was found in another case")
	}
	if got, ok := s.Lookup("a"); !ok || got.Spec().Name != "a" {
		t.Error("a is not found")
	}
	if _, err := NewSet(a, a); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("a name twice: %v", err)
	}
	if _, err := NewSet(stub{Spec{Name: "x"}}); err == nil || !strings.Contains(err.Error(), "tool.Declare") {
		t.Errorf("a spec that was not declared: %v", err)
	}
	lost := Spec{Name: "x", Identity: []string{"ordr"}, Parameters: json.RawMessage(`{"type":"object","properties":{"order":{}}}`)}
	if _, err := NewSet(declared(t, lost)); err == nil || !strings.Contains(err.Error(), `"order"`) {
		t.Errorf("an identity that no argument has: %v", err)
	}
	var zero Set
	if err := zero.Add(a); err != nil {
		t.Errorf("the zero set: %v", err)
	}
	if err := zero.Validate("nope", "{}"); err == nil {
		t.Error("an unknown tool validates")
	}
}
