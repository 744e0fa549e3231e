package tool

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// HTTPConfig describes a tool that is one HTTP request.
type HTTPConfig struct {
	Name        string
	Description string
	Method      string // default GET
	// URL is the template: {arg} placeholders in path and query values take arguments.
	URL string
	// Headers are sent as they are; their values may be secrets and are no part of the version.
	Headers map[string]string
	// HeaderRefs are the references that the values came from, such as "env:TOKEN", by header.
	HeaderRefs map[string]string
	// Parameters is the JSON schema of the arguments.
	Parameters json.RawMessage
	Class      agent.Class
	Window     time.Duration
	Timeout    time.Duration
	Identity   []string
	Resource   string
	// Query names arguments that are sent as query values when they are given.
	Query []string
	// Body is "json" (the arguments that URL and Query do not use; default unless the method is GET
	// or HEAD) or "none".
	Body string
	// AllowPrivate lets a host name resolve to loopback and private addresses.
	AllowPrivate bool
	// MaxResult bounds the answer's body in bytes; 0 is 32 MiB.
	MaxResult int64
}

// NewHTTP makes a tool that is one HTTP request.
func NewHTTP(c HTTPConfig) (Tool, error) { return nil, errors.New("not built yet") }
