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
	// A schema goes in as text: the envelope's number rule is a float64 and would make two bounds equal.
	b, err := json.Marshal(struct {
		Name, Description, Parameters string
		Class                         agent.Class
		Window, Timeout, Source       string
		Identity                      []string
		Resource                      string
		More                          any
	}{
		s.Name, s.Description, string(s.Parameters),
		s.Class, s.Window.String(), s.Timeout.String(), s.Source,
		s.Identity, s.Resource, more,
	})
	if err == nil {
		b, err = jcs.Transform(b)
	}
	if err != nil {
		return Spec{}, fmt.Errorf("tool %q: its declaration has no JSON form: %w", s.Name, err)
	}
	s.Version = agent.DigestOf(b)
	return s, nil
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
