package worker

import (
	"encoding/json"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/secret"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
)

// A Config is a holdfast.yaml that was read and found to be right, with all references resolved. It comes
// from [Load] or [Parse] and is not changed after that; one that is put together by hand cannot be run.
type Config struct {
	// Serial rises with every change of the file; work that has seen a higher one is refused. Default 1.
	Serial int64
	Store  Store
	Models map[string]Model
	Tools  map[string]Tool
	Agents map[string]Agent
	// Policy is the operator's, without the agents' own layers: see [Agent].
	Policy policy.Config
	// Upgrade is what becomes of sessions whose agent is defined anew, for agents that do not say it. Default follow.
	Upgrade agent.Upgrade
	Limits  Limits
	Worker  Worker

	source source
	mask   *secret.Mask
}

// A Store says where transcripts, bodies and records are kept.
type Store struct {
	// URL is file:///abs, mem://, s3://, gs:// or azblob://. A relative file://./path counts from the
	// file's folder and is absolute here. Default file://./.holdfast/store.
	URL string
	// Seal is the key of an HMAC over records; empty leaves them unsealed.
	Seal Value
}

// A Model is one model at one OpenAI-compatible server.
type Model struct {
	BaseURL string // default https://api.openai.com/v1
	Model   string // as the server names it; default the name in the file
	Key     Value  // empty for a server without keys
	Prices  Prices
	Limits  ModelLimits
	Timeout ModelTimeouts
	Stream  bool // default true
	// Temperature is nil when the server's own default applies.
	Temperature *float32
}

// Prices are per million tokens, in whatever currency the operator counts.
type Prices struct{ Input, CachedInput, Output float64 }

// ModelLimits bound the use of a model.
type ModelLimits struct {
	Concurrency  int // calls at a time on this worker; 0 is no limit
	OutputTokens int // of one answer; 0 is the server's default
}

// ModelTimeouts bound a model call in time.
type ModelTimeouts struct {
	Attempt   time.Duration // one request; default 5m
	Call      time.Duration // how long it is tried again; default 15m
	Idle      time.Duration // silence inside a streamed answer; default 1m
	Heartbeat time.Duration // after which a silent attempt is given up; default 15s
}

// A Tool is one HTTP tool or one MCP server with all its tools.
type Tool struct {
	Description string
	Effect      agent.Class // empty means once
	Window      time.Duration
	Timeout     time.Duration
	Parameters  json.RawMessage // JSON schema, numbers as written; empty is no parameters
	Identity    []string
	Resource    string
	Harm        Harm
	HTTP        *HTTP

	MCP         *MCP
	Trusted     bool          // the server's own annotations decide the effect of undeclared tools
	ListTimeout time.Duration // start, handshake and listing together; default 1m
	Tools       map[string]Declaration
}

// HTTP describes the request of an HTTP tool.
type HTTP struct {
	Method       string // default GET for a tool that reads, else POST
	URL          string // template with {argument} placeholders
	Headers      map[string]Value
	Query        []string
	Body         string // "json", "none" or empty for the method's default
	AllowPrivate bool
	MaxResult    int64 // bytes; 0 is the tool package's default
	// Reconcile asks what became of a call, Observe for the target's state before an approval; nil if the
	// service cannot be asked.
	Reconcile *HTTPAsk
	Observe   *HTTPAsk
}

// An HTTPAsk describes a request that asks and changes nothing.
type HTTPAsk struct {
	Method  string // GET or empty
	URL     string // template with {argument} placeholders, and {key} for the idempotency key
	Query   []string
	Headers map[string]Value // besides the tool's own
	// Found and Absent are conditions on the answer (CEL over status, body and text); Observe has none.
	Found  string
	Absent string
}

// Harm is what a tool's declaration says about the harm of a call and how it is undone.
type Harm struct {
	Risk         agent.Risk // empty is the tool package's default
	Irreversible bool
	Compensate   *tool.Compensation
	// AbsentAfter is how long after the last moment of sending "no such thing" proves nothing yet.
	AbsentAfter time.Duration
}

// MCP says how an MCP server is reached: a command over stdio or a URL over streamable HTTP.
type MCP struct {
	Command []string
	Env     map[string]Value // all that the process gets besides PATH
	URL     string
	Headers map[string]Value
	// AllowPrivate lets a name resolve to a private address, as with an HTTP tool.
	AllowPrivate bool
	// MaxResult bounds in bytes what one call may give back; 0 is the tool package's default.
	MaxResult int64
	// Concurrency bounds the calls that run at once; 0 is the tool package's default.
	Concurrency int
}

// A Declaration says about one tool of an MCP server what the server cannot be trusted to say.
type Declaration struct {
	Effect   agent.Class
	Window   time.Duration
	Timeout  time.Duration
	Identity []string
	Resource string
	Harm     Harm
	// Reconcile and Observe are as in [HTTP].
	Reconcile *tool.MCPAsk
	Observe   *tool.MCPAsk
}

// An Agent is what a client names.
type Agent struct {
	Instructions string
	Model        string
	// Tools are names of tools, "server.tool" for one tool of an MCP server, "server.*" for all.
	Tools  []string
	Limits agent.Limits
	// Upgrade is what becomes of the agent's sessions when it is defined anew; default the configuration's.
	Upgrade agent.Upgrade
	// Policy is the agent's own part of the policy: it can only narrow the operator's.
	Policy policy.Layer
}

// Limits hold for every agent.
type Limits struct {
	// Result is how many bytes of a tool's result the model sees. Default 48KiB.
	Result int64
	// Cache is how many bytes of decoded transcripts the worker keeps. Default 128MiB.
	Cache int64
}

// A Worker says how the process behaves. Only ToolHeartbeat is read again while it runs.
type Worker struct {
	TaskQueue string // default "holdfast"
	// Deployment is the worker deployment that this worker is a build of; empty is none.
	Deployment  string
	Concurrency int           // activities at a time; default 200
	Health      string        // address of /healthz and /readyz; empty serves none
	StopTimeout time.Duration // how long running activities may go on after a stop; default 30s
	// StickyTimeout is how long a workflow task waits for the worker that has the run in its cache.
	// Default 5s.
	StickyTimeout time.Duration
	// ToolHeartbeat is after which silence an attempt of a tool is given up. Default 15s.
	ToolHeartbeat time.Duration
}

// Path returns the file that was loaded, empty for a configuration from [Parse].
func (c *Config) Path() string { return c.source.path }

// Digest returns the digest of what the file says, instructions in other files included, secrets not.
func (c *Config) Digest() agent.Digest { return c.source.digest }
