package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/secret"
)

// An MCPConfig describes one MCP server: a command that is started (stdio) or a URL (streamable HTTP).
type MCPConfig struct {
	// Name is the server's name in the configuration: letters, digits, "_" and "-", at most 32. It is
	// the first part of its tools' names.
	Name string
	// Command and its arguments; no shell is involved. The server runs in a process group of its own
	// and does not outlive this process.
	Command []string
	// Env is the server's environment, "NAME=value" each, and all of it: nothing is inherited but PATH,
	// without which hardly a command starts. A PATH in Env replaces that.
	Env []string
	// URL is the endpoint of a server that is reached over streamable HTTP.
	URL string
	// Headers are sent with every request. A value that HeaderRefs has a reference for (such as
	// "env:TOKEN") is a secret: its reference is part of the tools' versions, its value is not.
	Headers    map[string]string
	HeaderRefs map[string]string
	// AllowPrivate and Refuse decide which addresses the URL's host may be at: see [NewHTTP].
	AllowPrivate bool
	Refuse       []string
	// Trusted lets the server's annotations decide the class of a tool that Tools does not declare.
	Trusted bool
	// ListTimeout bounds start, handshake and listing together; 0 is a minute, because a first npx run
	// downloads.
	ListTimeout time.Duration
	// Tools declares tools by the name that the server gives them.
	Tools map[string]Declaration
	// MaxResult bounds what one call may give back in bytes; 0 is [DefaultMaxResult].
	MaxResult int64
	// Concurrency bounds the calls that run at once; 0 is 16. One session may have half of them.
	Concurrency int
}

// A Declaration is what the configuration says about one tool of a server. The fields mean what they
// mean in a [Spec].
type Declaration struct {
	Class    agent.Class
	Window   time.Duration
	Timeout  time.Duration
	Identity []string
	Resource string
	Risk     agent.Risk
	// Irreversible, Compensate and AbsentAfter are as in a [Spec].
	Irreversible bool
	Compensate   *Compensation
	AbsentAfter  time.Duration
	// Reconcile asks what became of a call, Observe what state its target is in before it; nil where no tool of
	// the server can say. Class reconcilable needs Reconcile.
	Reconcile, Observe *MCPAsk
}

// Defaults of an [MCPConfig].
const (
	defaultListTimeout = time.Minute
	defaultConcurrency = 16
)

// An MCPListing is one tool of a server as `config check` shows it.
type MCPListing struct {
	Tool string // the server's name for it
	Spec Spec   // zero when there is a Problem
	// Suggest says what the configuration might declare, judging by the server's annotations.
	Suggest string
	// Problem says why the tool cannot be used. The server's other tools are not affected.
	Problem string
}

// An MCPServer is a connection to one MCP server, shared by all sessions. It starts a server that died
// anew at the next call, after a growing pause when it keeps dying. All methods may be called by many
// goroutines.
type MCPServer struct {
	cfg     MCPConfig
	link    *mcpLink
	slots   *mcpSlots
	listing []MCPListing
	tools   []Tool
}

// ConnectMCP starts or reaches the server and lists its tools. The tools keep the version that they have
// now: when the server later lists something else under a name, calls of that tool are refused until it
// is connected to anew by another ConnectMCP. Over stdio a change is noticed when the server announces it
// or is started anew, over HTTP also when its listing is five minutes old. Secrets known to mask, which may
// be nil, are masked in errors, in what they quote of the server's stderr, and in text results.
func ConnectMCP(ctx context.Context, cfg MCPConfig, mask *secret.Mask) (*MCPServer, error) {
	cfg, err := checkMCP(cfg)
	if err != nil {
		return nil, err
	}
	return connectMCP(ctx, cfg, newMCPLink(cfg, mask))
}

func connectMCP(ctx context.Context, cfg MCPConfig, link *mcpLink) (*MCPServer, error) {
	m := &MCPServer{cfg: cfg, link: link, slots: newMCPSlots(cfg.Concurrency)}
	s, err := link.first(ctx)
	if err != nil {
		link.close()
		return nil, err
	}
	m.listing = describe(cfg, s.listed())
	for _, l := range m.listing {
		if l.Problem != "" {
			continue
		}
		t := &mcpTool{server: m, remote: l.Tool, spec: l.Spec, digest: s.listed().digest(l.Tool)}
		if t.more, err = t.asks(cfg.Tools[l.Tool], s.listed()); err != nil {
			link.close()
			return nil, link.about(err)
		}
		m.tools = append(m.tools, t)
	}
	return m, nil
}

// Tools returns the server's usable tools in the order of their names.
func (m *MCPServer) Tools() []Tool { return slices.Clone(m.tools) }

// Listing returns everything that the server listed or the configuration declares, usable or not, in the
// order of the server's names.
func (m *MCPServer) Listing() []MCPListing { return slices.Clone(m.listing) }

// Select returns the names of the usable tools that an entry of an agent's tool list means:
// "<server>.*", "<server>.<tool>" with the server's own name for it, or the name of [Spec] itself.
func (m *MCPServer) Select(entry string) []string {
	var names []string
	for _, l := range m.listing {
		if l.Problem != "" {
			continue
		}
		if entry == m.cfg.Name+".*" || entry == m.cfg.Name+"."+l.Tool || entry == l.Spec.Name {
			names = append(names, l.Spec.Name)
		}
	}
	return names
}

// Close ends the connection, and with it calls that are running, and stops the server's processes. It
// returns when they are gone.
func (m *MCPServer) Close() { m.link.close() }

var mcpServerName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$`)

func checkMCP(c MCPConfig) (MCPConfig, error) {
	fail := func(format string, a ...any) (MCPConfig, error) {
		return c, fmt.Errorf("mcp server %.80q: "+format, append([]any{c.Name}, a...)...)
	}
	if !mcpServerName.MatchString(c.Name) {
		return fail("a name is 1 to 32 of the characters A-Z a-z 0-9 _ - and starts with a letter or digit; rename it")
	}
	if (len(c.Command) > 0) == (c.URL != "") {
		return fail("give it either a command or a url")
	}
	if len(c.Command) > 0 && c.Command[0] == "" {
		return fail("the command is empty; name a program")
	}
	for _, e := range c.Env {
		if name, _, ok := strings.Cut(e, "="); !ok || name == "" || strings.ContainsRune(e, 0) {
			return fail("an entry of its environment is not NAME=value; mend it")
		}
	}
	if c.URL != "" {
		if err := checkMCPURL(c.URL); err != nil {
			return fail("%w", err)
		}
	}
	for name, value := range c.Headers {
		if err := checkHeader(name, value); err != nil {
			return fail("%w", err)
		}
		if http.CanonicalHeaderKey(name) == "X-Idempotency-Key" { // net/http sends a request that has it twice
			return fail("the header %q cannot be set; leave it out", name)
		}
	}
	if c.ListTimeout < 0 || c.MaxResult < 0 || c.Concurrency < 0 {
		return fail("a limit is negative; remove it to get the default")
	}
	for name, d := range c.Tools {
		if err := c.checkAsks(name, d); err != nil {
			return fail("%w", err)
		}
	}
	c.ListTimeout = cmp.Or(c.ListTimeout, defaultListTimeout)
	c.MaxResult = cmp.Or(c.MaxResult, DefaultMaxResult)
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	return c, nil
}

func checkMCPURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("the url cannot be read; write https://host/path")
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return errors.New("the url is not http or https; write https://host/path")
	case u.User != nil:
		return errors.New("the url holds credentials; move them to headers")
	}
	return nil
}
