package worker

import (
	"cmp"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

var (
	plainName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	headerName = regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")
)

// maxServerName leaves room for a tool's own name in what a model calls.
const maxServerName = 32

// ownHeaders are set by Holdfast or by the HTTP client and cannot be set in the file.
var ownHeaders = []string{
	"Idempotency-Key", "Host", "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Upgrade",
}

// finish checks what the file means, fills in what depends on other values and reports all that is wrong.
func (c *Config) finish(d *decoder, dir string) {
	c.checkStore(d, dir)
	c.checkWorker(d)
	if len(c.Models) == 0 {
		d.fail("models", "no model is given; add models: {main: {model: ..., key: env:OPENAI_API_KEY}}")
	}
	for _, name := range sortedKeys(c.Models) {
		c.checkModel(d, "models/"+name, name, c.Models[name])
	}
	for _, name := range sortedKeys(c.Tools) {
		d.checkName("tools/"+name, name)
		d.checkTool("tools/"+name, c.Tools[name])
	}
	if len(c.Agents) == 0 {
		d.fail("agents", "no agent is given; add agents: {hello: {instructions: ...}}")
	}
	for _, name := range sortedKeys(c.Agents) {
		a := c.Agents[name]
		d.checkName("agents/"+name, name)
		c.checkAgent(d, "agents/"+name, &a)
		c.Agents[name] = a
	}
}

func (d *decoder) checkName(path, name string) {
	switch {
	case !plainName.MatchString(name):
		d.fail(path, "%q cannot be a name; use 1 to 64 letters, digits, underscores and hyphens, a letter or digit first", clip(name))
	case strings.HasPrefix(strings.ToLower(name), "holdfast"):
		d.fail(path, "names that begin with \"holdfast\" are reserved; rename %q", name)
	}
}

func (c *Config) checkStore(d *decoder, dir string) {
	scheme, rest, ok := strings.Cut(c.Store.URL, "://")
	switch scheme {
	case "file":
		path, err := url.PathUnescape(rest)
		switch {
		case err != nil || strings.ContainsAny(rest, "?#"):
			d.fail("store/url", "a file store's URL is a path only; write file:///var/lib/holdfast or file://./folder")
			return
		case path == "":
			d.fail("store/url", "the store's URL names no folder; write file:///var/lib/holdfast or file://./folder")
			return
		case !filepath.IsAbs(path) && path != "." && path != ".." && !strings.HasPrefix(path, "./") && !strings.HasPrefix(path, "../"):
			d.fail("store/url", "%q would name a host; write file:///%s or file://./%s", clip(c.Store.URL), clip(path), clip(path))
			return
		case !filepath.IsAbs(path):
			path = filepath.Join(dir, path)
		}
		c.Store.URL = (&url.URL{Scheme: "file", Path: path}).String()
	case "mem", "s3", "gs", "azblob":
		if u, err := url.Parse(c.Store.URL); err != nil || u.User != nil {
			d.fail("store/url", "the store's URL cannot be read or holds a password; credentials come from the provider's own environment variables")
		}
	default:
		if !ok {
			scheme = c.Store.URL
		}
		d.fail("store/url", "%q is no kind of store; use file:///folder, s3://bucket, gs://bucket, azblob://container or mem:// (forgets everything)", clip(scheme))
	}
}

func (c *Config) checkWorker(d *decoder) {
	w := c.Worker
	if w.TaskQueue == "" || len(w.TaskQueue) > 200 || strings.HasPrefix(w.TaskQueue, "/") {
		d.fail("worker/task_queue", "a task queue has a name of 1 to 200 bytes that does not begin with \"/\"")
	}
	if w.Deployment != "" {
		if err := CheckDeployment(w.Deployment); err != nil {
			d.fail("worker/deployment", "%v; leave it out for none", err)
		}
	}
	if w.Concurrency < 1 {
		d.fail("worker/concurrency", "a worker runs at least one activity at a time; leave it out for 200")
	}
	if w.Health != "" {
		if _, port, err := net.SplitHostPort(w.Health); err != nil || !validPort(port) {
			d.fail("worker/health", "%q is no address; write \"127.0.0.1:8080\", or leave it out to serve none", clip(w.Health))
		}
	}
	d.aSecond("worker/tool_heartbeat", w.ToolHeartbeat)
	d.aSecond("worker/sticky_timeout", w.StickyTimeout)
	if c.Limits.Result < 256 || c.Limits.Result > 1<<20 {
		d.fail("limits/result", "limits.result is what a model sees of one result; want 256B to 1MiB")
	}
}

func validPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && strconv.FormatUint(n, 10) == s
}

// aSecond refuses a time that is shorter.
func (d *decoder) aSecond(path string, t time.Duration) {
	if t < time.Second {
		d.fail(path, "%s is %s; want at least %s", value{path: path}.shown(), t, time.Second)
	}
}

func (c *Config) checkModel(d *decoder, path, name string, m Model) {
	d.checkName(path, name)
	if m.Model == "" {
		d.fail(path+"/model", "the model has no name; write model: as its server calls it")
	}
	if why := badURL(m.BaseURL); why != "" {
		d.fail(path+"/base_url", "base_url %s; write for example %s", why, defaultBaseURL)
	}
	if _, given := d.at[path+"/key"]; m.BaseURL == defaultBaseURL && !given {
		d.fail(path+"/key", "model %q has no key for %s; add key: env:OPENAI_API_KEY, or base_url: for another server", name, defaultBaseURL)
	}
	d.aSecond(path+"/timeouts/attempt", m.Timeout.Attempt)
	d.aSecond(path+"/timeouts/idle", m.Timeout.Idle)
	d.aSecond(path+"/timeouts/heartbeat", m.Timeout.Heartbeat)
	if m.Timeout.Call < m.Timeout.Attempt {
		d.fail(path+"/timeouts/call", "timeouts.call (%s) bounds all attempts together and is below timeouts.attempt (%s); raise it", m.Timeout.Call, m.Timeout.Attempt)
	}
	if m.Temperature != nil && *m.Temperature > 2 {
		d.fail(path+"/temperature", "temperature goes from 0 to 2")
	}
}

// badURL says what is wrong with an http or https URL, or nothing.
func badURL(s string) string {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "cannot be read as a URL"
	case u.Scheme != "http" && u.Scheme != "https":
		return "does not begin with http:// or https://"
	case u.Hostname() == "":
		return "names no host"
	case u.User != nil:
		return "holds a user name or password; send it as a header by reference"
	}
	return ""
}

func (d *decoder) checkTool(path string, t Tool) {
	name := value{path: path}.shown()
	switch {
	case t.HTTP != nil && t.MCP != nil:
		d.fail(path, "%s has both http and mcp; make two tools of it", name)
	case t.HTTP != nil:
		d.checkHTTP(path, t)
	case t.MCP != nil:
		d.checkMCP(path, t)
	default:
		d.fail(path, "%s says neither http nor mcp; add http: {url: ...} or mcp: {command: [...]}", name)
	}
}

func (d *decoder) checkHTTP(path string, t Tool) {
	d.checkWindow(path, t.Effect, t.Window)
	d.only(path, "a tool of an MCP server", "trusted", "list_timeout", "tools")
	if t.Description == "" {
		d.fail(path+"/description", "%s has no description; the model needs one to know when to call it", value{path: path}.shown())
	}
	var schema struct {
		Type any `json:"type"`
	}
	if len(t.Parameters) > 0 && (json.Unmarshal(t.Parameters, &schema) != nil || schema.Type != "object") {
		d.fail(path+"/parameters", "parameters is a JSON schema of an object; begin with type: object")
	}
	h := t.HTTP
	if h.URL == "" {
		d.fail(path+"/http/url", "http has no url; add url: https://...")
	} else if why := badURL(strings.NewReplacer("{", "", "}", "").Replace(h.URL)); why != "" {
		d.fail(path+"/http/url", "http.url %s", why)
	}
	if h.Method != "" && !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, h.Method) {
		d.fail(path+"/http/method", "http.method is %q; want GET, HEAD, POST, PUT, PATCH or DELETE in capitals", clip(h.Method))
	}
	if h.Body != "" && h.Body != "json" && h.Body != "none" {
		d.fail(path+"/http/body", "http.body is %q; want json (the arguments that URL and query leave over) or none", clip(h.Body))
	}
	d.checkHeaders(path+"/http/headers", h.Headers)
	d.checkAsked(path+"/effect", "http.reconcile", t.Effect, h.Reconcile != nil)
	d.checkHarm(path, t.Effect, t.Harm, h.Reconcile != nil)
	d.checkHTTPAsk(path+"/http/reconcile", h.Reconcile, true)
	d.checkHTTPAsk(path+"/http/observe", h.Observe, false)
}

func (d *decoder) checkHeaders(path string, headers map[string]Value) {
	seen := map[string]bool{}
	for _, name := range sortedKeys(headers) {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !headerName.MatchString(name):
			d.fail(path+"/"+name, "%q cannot be the name of a header", clip(name))
		case slices.Contains(ownHeaders, canonical):
			d.fail(path+"/"+name, "the header %s is set by Holdfast; remove it", canonical)
		case seen[canonical]:
			d.fail(path+"/"+name, "the header %s is given twice; remove one", canonical)
		}
		seen[canonical] = true
		if strings.ContainsAny(headers[name].resolved, "\r\n\x00") {
			d.fail(path+"/"+name, "the header %s has more than one line", canonical)
		}
	}
}

func (d *decoder) checkMCP(path string, t Tool) {
	d.only(path, "an HTTP tool; give it under tools: for each tool of the server",
		"description", "effect", "window", "timeout", "parameters", "identity", "resource",
		"risk", "irreversible", "compensate", "absent_after")
	m := t.MCP
	switch {
	case len(m.Command) == 0 && m.URL == "":
		d.fail(path+"/mcp", "mcp says neither command nor url; add command: [program, argument] or url: https://...")
	case len(m.Command) > 0 && m.URL != "":
		d.fail(path+"/mcp", "mcp has both command and url; a server is reached in one way, remove one")
	case m.URL != "":
		if why := badURL(m.URL); why != "" {
			d.fail(path+"/mcp/url", "mcp.url %s", why)
		}
		d.only(path+"/mcp", "a server that is started by command", "env")
	default:
		if m.Command[0] == "" {
			d.fail(path+"/mcp/command", "the command's program is empty")
		}
		d.only(path+"/mcp", "a server that is reached by url", "headers")
	}
	for _, name := range sortedKeys(m.Env) {
		if !envName.MatchString(name) {
			d.fail(path+"/mcp/env/"+name, "%q cannot name an environment variable; use letters, digits and underscores", clip(name))
		}
	}
	d.checkHeaders(path+"/mcp/headers", m.Headers)
	d.aSecond(path+"/list_timeout", t.ListTimeout)
	if server := path[strings.LastIndexByte(path, '/')+1:]; len(server) > maxServerName {
		d.fail(path, "the name of an MCP server begins the names of its tools; shorten %q to %d characters", clip(server), maxServerName)
	}
	for _, name := range sortedKeys(t.Tools) {
		at, one := path+"/tools/"+name, t.Tools[name]
		d.checkWindow(at, one.Effect, one.Window)
		d.checkAsked(at+"/effect", "reconcile", one.Effect, one.Reconcile != nil)
		d.checkHarm(at, one.Effect, one.Harm, one.Reconcile != nil)
		d.checkMCPAsk(at+"/reconcile", one.Reconcile, true)
		d.checkMCPAsk(at+"/observe", one.Observe, false)
	}
}

func (d *decoder) checkWindow(path string, class agent.Class, window time.Duration) {
	if window != 0 && class != agent.ClassIdempotent {
		d.fail(path+"/window", "only effect: idempotent has a window, the time in which the destination remembers a key; remove it or declare the effect")
	}
}

// only reports fields that belong to something else.
func (d *decoder) only(path, owner string, names ...string) {
	for _, name := range names {
		if _, given := d.at[path+"/"+name]; given {
			d.fail(path+"/"+name, "%s belongs to %s; remove it here", name, owner)
		}
	}
}

func (c *Config) checkAgent(d *decoder, path string, a *Agent) {
	name := value{path: path}.shown()
	if a.Instructions == "" {
		d.fail(path+"/instructions", "%s has no instructions; write what it is for, or file:prompt.md", name)
	}
	a.Upgrade = cmp.Or(a.Upgrade, c.Upgrade)
	if a.Model == "" && len(c.Models) == 1 {
		a.Model = sortedKeys(c.Models)[0]
	}
	if _, ok := c.Models[a.Model]; !ok && len(c.Models) > 0 {
		known := sortedKeys(c.Models)
		d.fail(path+"/model", "%s names the model %q, which models does not have; %suse one of: %s",
			name, clip(a.Model), meant(a.Model, known), strings.Join(known, ", "))
	}
	for limit, n := range map[string]int{"steps": a.Limits.Steps, "calls": a.Limits.Calls, "faults": a.Limits.Faults} {
		if n < 1 {
			d.fail(path+"/limits/"+limit, "limits.%s must be at least 1; leave it out for the default", limit)
		}
	}
	seen := map[string]int{}
	for i, t := range a.Tools {
		at := path + "/tools/" + strconv.Itoa(i)
		if first, twice := seen[t]; twice {
			d.fail(at, "%s lists the tool %q twice, first at position %d; remove one", name, clip(t), first+1)
			continue
		}
		seen[t] = i
		c.checkToolName(d, at, t)
	}
}

// checkToolName reports what cannot be the name of a tool whatever Go tools the program adds.
func (c *Config) checkToolName(d *decoder, at, name string) {
	server, one, dotted := strings.Cut(name, ".")
	t, known := c.Tools[server]
	switch {
	case name == "*":
		d.fail(at, "\"*\" alone is too much; list the tools by name, or \"server.*\" for all tools of an MCP server")
	case dotted && (!known || t.MCP == nil):
		d.fail(at, "%q names a tool of the MCP server %q, which tools does not have", clip(name), clip(server))
	case dotted && one == "":
		d.fail(at, "%q names no tool after the dot; write \"%s.*\" for all of them", clip(name), server)
	case !dotted && known && t.MCP != nil:
		d.fail(at, "%q is an MCP server; write \"%s.*\" for all of its tools or \"%s.tool\" for one", clip(name), server, server)
	case !dotted && !plainName.MatchString(name) && !strings.HasPrefix(name, "_") && !strings.HasPrefix(name, "-"):
		d.fail(at, "%q cannot be the name of a tool; use letters, digits, underscores and hyphens", clip(name))
	}
}
