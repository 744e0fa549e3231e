package tool

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/gowebpki/jcs"

	"github.com/holdfast-run/holdfast/agent"
)

// emptyParameters is the schema of a tool that declares none: no arguments at all.
const emptyParameters = `{"type":"object","properties":{},"additionalProperties":false}`

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// Declare fills in the defaults of s, checks it and sets its version: the digest of s and of more, which
// is whatever else decides what the tool does (a URL, a command, the names of headers; never a secret's
// value). Every constructor of this package uses it, and so should a [Tool] written by hand.
func Declare(s Spec, more any) (Spec, error) {
	s, err := withDefaults(s)
	if err != nil {
		return Spec{}, err
	}
	b, err := json.Marshal(s.envelope(more))
	if err == nil {
		b, err = jcs.Transform(b)
	}
	if err != nil {
		return Spec{}, fmt.Errorf("tool %q: its declaration has no JSON form: %w", s.Name, err)
	}
	s.Version = agent.DigestOf(b)
	return s, nil
}

// An envelope is what a version is the digest of. A schema goes in as text: the number rule of its form is a float64
// and would make two bounds equal. What is left out when it says nothing leaves the versions of tools that do not
// use it, and with them the keys of their calls, what they were before it was there.
type envelope struct {
	Name, Description, Parameters string
	Class                         agent.Class
	Window, Timeout, Source       string
	Identity                      []string
	Resource                      string
	Risk                          agent.Risk    `json:",omitempty"`
	Irreversible                  bool          `json:",omitempty"`
	Compensate                    *Compensation `json:",omitempty"`
	AbsentAfter                   string        `json:",omitempty"`
	More                          any
}

func (s Spec) envelope(more any) envelope {
	e := envelope{
		Name: s.Name, Description: s.Description, Parameters: string(s.Parameters),
		Class: s.Class, Window: s.Window.String(), Timeout: s.Timeout.String(), Source: s.Source,
		Identity: s.Identity, Resource: s.Resource,
		Irreversible: s.Irreversible, Compensate: s.Compensate, More: more,
	}
	if s.Risk != s.defaultRisk() {
		e.Risk = s.Risk
	}
	if s.AbsentAfter != 0 {
		e.AbsentAfter = s.AbsentAfter.String()
	}
	return e
}

func withDefaults(s Spec) (Spec, error) {
	if !toolName.MatchString(s.Name) {
		return s, fmt.Errorf("tool %.80q: a name is 1 to 64 of the characters A-Z a-z 0-9 _ -; rename it", s.Name)
	}
	switch s.Class {
	case "":
		s.Class = agent.ClassOnce
	case agent.ClassRead, agent.ClassIdempotent, agent.ClassReconcilable, agent.ClassOnce:
	default:
		return s, fmt.Errorf("tool %q: unknown class %q; use read, idempotent, reconcilable or once", s.Name, s.Class)
	}
	if s.Window < 0 || s.Timeout < 0 {
		return s, fmt.Errorf("tool %q: window and timeout cannot be negative", s.Name)
	}
	if s.Window != 0 && s.Class != agent.ClassIdempotent {
		return s, fmt.Errorf("tool %q: only a tool of class idempotent has a window; remove it", s.Name)
	}
	if s.Class == agent.ClassIdempotent && s.Window == 0 {
		s.Window = DefaultWindow
	}
	if s.Timeout == 0 {
		s.Timeout = DefaultTimeout
	}
	s, err := s.withHarm()
	if err != nil {
		return s, fmt.Errorf("tool %q: %w", s.Name, err)
	}
	if len(s.Parameters) == 0 {
		s.Parameters = json.RawMessage(emptyParameters)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, s.Parameters); err != nil {
		return s, fmt.Errorf("tool %q: its parameters are not JSON: %w", s.Name, err)
	}
	s.Parameters = b.Bytes()
	return s, nil
}
