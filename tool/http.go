package tool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/secret"
)

// DefaultMaxResult is the longest answer of an HTTP tool in bytes, unless its configuration says
// otherwise.
const DefaultMaxResult = 32 << 20

// HTTPConfig describes a tool that is one HTTP request. It comes from the operator's file; of what a
// model says, only argument values reach the request, each in the place that the file gives it.
type HTTPConfig struct {
	Name        string
	Description string
	// Method is GET (the default), HEAD, POST, PUT, PATCH or DELETE.
	Method string
	// URL is a template. {arg} in the path takes a required argument as one segment or a piece of
	// one, {arg} in a query value takes any argument; what is absent leaves its whole "key=value" out.
	// Scheme, host and port hold none, nor does the name of a query value.
	URL string
	// Headers are sent as they are. A value that HeaderRefs has a reference for (such as "env:TOKEN")
	// is a secret: its reference is part of the tool's version, its value is not.
	Headers    map[string]string
	HeaderRefs map[string]string
	// Parameters is the JSON schema of the arguments.
	Parameters json.RawMessage
	Class      agent.Class
	Window     time.Duration
	Timeout    time.Duration
	Identity   []string
	Resource   string
	// Risk, Irreversible, Compensate and AbsentAfter mean what they mean in a [Spec].
	Risk         agent.Risk
	Irreversible bool
	Compensate   *Compensation
	AbsentAfter  time.Duration
	// Reconcile asks what became of a call, Observe what state its target is in before it; nil where the
	// destination cannot be asked. Class reconcilable needs Reconcile.
	Reconcile, Observe *HTTPAsk
	// Query names the arguments that are sent as query values when they are given; an array is sent as
	// its key several times.
	Query []string
	// Body is "json", the default unless the method is GET or HEAD: an object of the arguments that
	// neither URL nor Query uses; or "none".
	Body string
	// AllowPrivate lets the URL's host name resolve to loopback and private addresses. See NewHTTP.
	AllowPrivate bool
	// Refuse lists addresses, as "host:port", that are never connected to unless URL names them:
	// Temporal's own.
	Refuse []string
	// MaxResult bounds the answer in bytes, unpacked; 0 is DefaultMaxResult.
	MaxResult int64
}

// NewHTTP makes a tool that is one HTTP request.
//
// Every class but read sends the call's key as Idempotency-Key, a structured field string
// (draft-ietf-httpapi-idempotency-key-header). Such a request gets a connection of its own: net/http
// would silently send it a second time when a kept connection turns out to be dead, and takes that very
// header as permission. HTTP/2 and proxies from the environment are not used.
//
// Arguments are escaped and cannot leave their place in the URL. Redirects are followed to the same
// scheme, host and port only; of a method other than GET and HEAD only 307 and 308, which repeat it with
// its body and key.
//
// The host stands in the file, but what it resolves to is up to others, so addresses are checked when
// they are connected to. An IP address in the URL is named by the file: it may be anything. "localhost"
// names loopback addresses. A name that nobody outside can own (without a dot, or below .internal,
// .local, .localhost, .lan, .home.arpa, .svc or .cluster.local) may be private. Every other name has to
// be public, unless AllowPrivate is set. Link-local addresses, where clouds hand out credentials, and
// those in Refuse are for no name at all.
//
// Errors mean: no connection (name, address, TLS) is not sent; 4xx is a failure whose text goes to the
// model, but for 408, 409, 425 and 429; those, 5xx and whatever goes wrong once there is a connection
// are ambiguous. 429 and 503 carry Retry-After: see [RetryAfter].
func NewHTTP(c HTTPConfig) (Tool, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	spec, err := Declare(Spec{
		Name: c.Name, Description: c.Description, Parameters: c.Parameters, Class: c.Class, Window: c.Window,
		Timeout: c.Timeout, Source: "http", Identity: c.Identity, Resource: c.Resource,
		Risk: c.Risk, Irreversible: c.Irreversible, Compensate: c.Compensate, AbsentAfter: c.AbsentAfter,
	}, c.declaration())
	if err != nil {
		return nil, err
	}
	if err := checkExtras(spec, c.Reconcile != nil); err != nil {
		return nil, err
	}
	sch, err := compile(spec)
	if err != nil {
		return nil, err
	}
	target, err := parseTarget(c.URL, c.Query)
	if err == nil {
		err = c.checkArguments(target, sch)
	}
	if err != nil {
		return nil, fmt.Errorf("tool %q: %w", c.Name, err)
	}
	t := &httpTool{spec: spec, config: c, target: target, mask: secret.New(headerSecrets(c.Headers, c.HeaderRefs)...)}
	if t.more, err = c.asks(t, sch); err != nil {
		return nil, fmt.Errorf("tool %q: %w", c.Name, err)
	}
	t.client = &http.Client{
		Transport:     newTransport(newGuard(target.base, c.AllowPrivate, c.Refuse), spec.Class == agent.ClassRead),
		CheckRedirect: redirects,
	}
	return t, nil
}

func (c HTTPConfig) withDefaults() (HTTPConfig, error) {
	if c.Method == "" {
		c.Method = http.MethodGet
	}
	bare := c.Method == http.MethodGet || c.Method == http.MethodHead
	if c.Body == "" && bare {
		c.Body = "none"
	} else if c.Body == "" {
		c.Body = "json"
	}
	if c.MaxResult == 0 {
		c.MaxResult = DefaultMaxResult
	}
	methods := []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
	switch {
	case !slices.Contains(methods, c.Method):
		return c, fmt.Errorf("tool %.80q: unknown method %q; use one of %s", c.Name, c.Method, strings.Join(methods, ", "))
	case c.Body != "json" && c.Body != "none":
		return c, fmt.Errorf("tool %.80q: unknown body %q; use json or none", c.Name, c.Body)
	case c.Body == "json" && bare:
		return c, fmt.Errorf("tool %.80q: %s has no body; use another method, or send the arguments as query", c.Name, c.Method)
	case c.MaxResult < 0:
		return c, fmt.Errorf("tool %.80q: the bound of its result cannot be negative", c.Name)
	}
	if err := checkHeaders(c.Headers, c.HeaderRefs); err != nil {
		return c, fmt.Errorf("tool %.80q: %w", c.Name, err)
	}
	return c, nil
}

func checkHeaders(values, refs map[string]string) error {
	for name, value := range values {
		if err := checkHeader(name, value); err != nil {
			return err
		}
	}
	for name := range refs {
		if _, ok := values[name]; !ok {
			return fmt.Errorf("header %q has a reference and no value", name)
		}
	}
	return nil
}

// ours are the headers that decide how a request is framed or what it is; a file does not set them.
var ours = [...]string{
	"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Accept-Encoding",
	"Idempotency-Key",
}

// checkHeader never prints a value: it may be a secret.
func checkHeader(name, value string) error {
	const token = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" // RFC 9110, 5.6.2
	if name == "" || strings.Trim(name, token) != "" {
		return fmt.Errorf("%.80q is not the name of a header", name)
	}
	if slices.Contains(ours[:], textproto.CanonicalMIMEHeaderKey(name)) {
		return fmt.Errorf("the header %q cannot be set; leave it out", name)
	}
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fmt.Errorf("the value of header %q holds a control character, perhaps the line end of a file; take it out", name)
		}
	}
	return nil
}

// headerSecrets returns the values of headers that are secrets, and what follows an authentication scheme such as
// "Bearer".
func headerSecrets(values, refs map[string]string) []string {
	var secrets []string
	for name := range refs {
		_, credentials, _ := strings.Cut(values[name], " ")
		secrets = append(secrets, values[name], credentials)
	}
	return secrets
}

// plainHeaders returns the headers that are no secrets.
func plainHeaders(values, refs map[string]string) map[string]string {
	plain := map[string]string{}
	for name, value := range values {
		if _, secret := refs[name]; !secret {
			plain[name] = value
		}
	}
	return plain
}

// declaration is what the version depends on besides the spec: everything but the values of secrets.
func (c HTTPConfig) declaration() any {
	d := map[string]any{
		"method": c.Method, "url": c.URL, "headers": plainHeaders(c.Headers, c.HeaderRefs), "headerRefs": c.HeaderRefs,
		"query": c.Query, "body": c.Body, "allowPrivate": c.AllowPrivate, "maxResult": c.MaxResult,
	}
	if c.Reconcile != nil {
		d["reconcile"] = c.Reconcile.declaration()
	}
	if c.Observe != nil {
		d["observe"] = c.Observe.declaration()
	}
	return d
}

// checkArguments finds out at start what would otherwise fail at every call.
func (c HTTPConfig) checkArguments(t *target, sch *schema) error {
	for _, name := range t.names() {
		if !slices.Contains(sch.properties, name) {
			return fmt.Errorf("the URL or query uses {%.80s}, which is not among its parameters", name)
		}
	}
	for _, name := range t.pathNames() {
		if !slices.Contains(sch.required, name) {
			return fmt.Errorf("the URL's path uses {%.80s}, which its parameters do not require; add it to \"required\"", name)
		}
	}
	if c.Body == "none" {
		for _, name := range sch.properties {
			if !slices.Contains(t.names(), name) {
				return fmt.Errorf("the parameter %.80q is sent nowhere; add it to the query or the URL", name)
			}
		}
	}
	return nil
}
