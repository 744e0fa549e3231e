package tool

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/holdfast-run/holdfast/internal/expr"
	"github.com/holdfast-run/holdfast/internal/secret"
)

// An HTTPAsk is a GET by which an HTTP tool asks about a call. It changes nothing. What holds for the tool's own
// requests holds for it: escaping, redirects, which addresses the host may be at, the timeout.
type HTTPAsk struct {
	// URL is a template as that of the tool, whose arguments it may use. {key} is the idempotency key, as a piece
	// of the path or a query value. What the template names and a call has not makes the ask fail: a question
	// without its filter would be answered for something else.
	URL string
	// Query names arguments that are sent as query values when they are given.
	Query []string
	// Headers are sent as well as the tool's own, which they override and which go only to the same scheme, host
	// and port. HeaderRefs are as in [HTTPConfig].
	Headers    map[string]string
	HeaderRefs map[string]string
	// Found and Absent are CEL conditions over status (int), body (the answer as JSON, or null), text (the answer
	// as text), args (the call's arguments) and key, by which Reconcile knows what became of the call. Without
	// Absent nothing proves that it did not happen. Observe has neither.
	Found, Absent string
}

// keyArg is what stands for the idempotency key in an ask.
const keyArg = "key"

type httpAsk struct {
	spec    Spec
	target  *target
	client  *http.Client
	headers http.Header
	mask    *secret.Mask
	limit   int64
	judge   judge // of a reconcile
}

// asks makes what the tool can be asked.
func (c HTTPConfig) asks(t *httpTool, sch *schema) (x extras, err error) {
	if c.Reconcile != nil {
		a, err := c.ask(c.Reconcile, t, sch)
		if err == nil {
			a.judge, err = httpJudge(c.Reconcile)
		}
		if err != nil {
			return x, fmt.Errorf("reconcile: %w", err)
		}
		x.reconcile = a
	}
	if c.Observe != nil {
		a, err := c.ask(c.Observe, t, sch)
		if err == nil && c.Observe.Found+c.Observe.Absent != "" {
			err = errors.New("found and absent belong to reconcile; remove them")
		}
		if err != nil {
			return x, fmt.Errorf("observe: %w", err)
		}
		x.observe = observeFunc(a.observe)
	}
	return x, nil
}

func httpJudge(a *HTTPAsk) (judge, error) {
	l, err := expr.New(map[string]expr.Type{
		"status": expr.Int, "body": expr.Any, "text": expr.Text, "args": expr.Any, "key": expr.Text,
	})
	if err != nil {
		return judge{}, err
	}
	return newJudge(l, a.Found, a.Absent)
}

func (c HTTPConfig) ask(q *HTTPAsk, t *httpTool, sch *schema) (*httpAsk, error) {
	target, err := parseTarget(q.URL, q.Query)
	if err == nil {
		err = q.check(target, sch)
	}
	if err != nil {
		return nil, err
	}
	headers := http.Header{}
	if *t.target.base == *target.base {
		setHeaders(headers, c.Headers)
	}
	setHeaders(headers, q.Headers)
	return &httpAsk{
		spec: t.spec, target: target, headers: headers, limit: min(c.MaxResult, expr.MaxJSON),
		mask: secret.New(append(headerSecrets(c.Headers, c.HeaderRefs), headerSecrets(q.Headers, q.HeaderRefs)...)...),
		client: &http.Client{
			Transport:     newTransport(newGuard(target.base, c.AllowPrivate, c.Refuse), true),
			CheckRedirect: redirects,
		},
	}, nil
}

func setHeaders(h http.Header, values map[string]string) {
	for name, value := range values {
		h.Set(name, value)
	}
}

// check finds out at start what would otherwise fail at every ask.
func (q *HTTPAsk) check(t *target, sch *schema) error {
	for _, name := range t.names() {
		switch declared := slices.Contains(sch.properties, name); {
		case name == keyArg && declared:
			return errors.New("{key} is the idempotency key, and the tool has a parameter of that name; rename the parameter")
		case name == keyArg && slices.Contains(q.Query, name):
			return errors.New(`the idempotency key is sent where the URL has {key}; write "?key={key}" there`)
		case name != keyArg && !declared:
			return fmt.Errorf("it uses {%.80s}, which is not among the tool's parameters", name)
		}
	}
	return checkHeaders(q.Headers, q.HeaderRefs)
}

// declaration is what the tool's version depends on: everything but the values of secrets.
func (q *HTTPAsk) declaration() any {
	return map[string]any{
		"url": q.URL, "query": q.Query, "headers": plainHeaders(q.Headers, q.HeaderRefs), "headerRefs": q.HeaderRefs,
		"found": q.Found, "absent": q.Absent,
	}
}
