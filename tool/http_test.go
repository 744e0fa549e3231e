package tool

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

const payParameters = `{"type":"object","required":["order"],"properties":{
	"order":{"type":"string"},"amount":{"type":"number"},"note":{"type":"string"},"tags":{"type":"array"},"q":{}}}`

// seen is what a server was asked.
type seen struct {
	Method, Path, Query, Body, Key, Type string
}

// books is a server that keeps what it was asked and answers with a handler.
type books struct {
	*httptest.Server
	mu  sync.Mutex
	all []seen
}

func serve(t *testing.T, answer http.HandlerFunc) *books {
	t.Helper()
	b := &books{}
	b.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		b.all = append(b.all, seen{
			r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(body), r.Header.Get("Idempotency-Key"), r.Header.Get("Content-Type"),
		})
		b.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(b.Close)
	return b
}

func (b *books) asked() []seen {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]seen(nil), b.all...)
}

func ok(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "done") }

func newHTTP(t *testing.T, c HTTPConfig) Tool {
	t.Helper()
	if c.Name == "" {
		c.Name = "pay"
	}
	if c.Parameters == nil {
		c.Parameters = json.RawMessage(payParameters)
	}
	tool, err := NewHTTP(c)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

const key = `s~01234567:turn-1/2.3/0123456789abcdef`

func do(t *testing.T, tool Tool, args string) (Result, error) {
	t.Helper()
	return tool.Do(t.Context(), Call{Key: key, Args: args})
}

func TestEachArgumentGoesToItsPlace(t *testing.T) {
	t.Parallel()
	b := serve(t, ok)
	sent := `"` + key + `"`
	cases := map[string]struct {
		config HTTPConfig
		args   string
		want   seen
	}{
		"path and body": {
			HTTPConfig{Method: "POST", URL: "/orders/{order}/refund"},
			`{"amount":9007199254740993.10,"note":"<é&\u2028>","order":"4 2/?#%"}`,
			seen{"POST", "/orders/4%202%2F%3F%23%25/refund", "", `{"amount":9007199254740993.10,"note":"<é&\u2028>"}`, sent, "application/json"},
		},
		"body only, as it is": {
			HTTPConfig{Method: "PUT", URL: ""},
			`{"amount":1.50,"order":"x"}`,
			seen{"PUT", "/", "", `{"amount":1.50,"order":"x"}`, sent, "application/json"},
		},
		"query": {
			HTTPConfig{Method: "GET", Class: agent.ClassRead, URL: "/find?v=1&o={order}&flag&n=a{note}", Query: []string{"tags", "q", "amount"}},
			`{"amount":1e+3,"order":"a&b=c","q":null,"tags":["x y",2.0,true]}`,
			seen{"GET", "/find", "v=1&o=a%26b%3Dc&flag&tags=x+y&tags=2.0&tags=true&amount=1e%2B3", "", "", ""},
		},
		"piece of a segment": {
			HTTPConfig{Method: "DELETE", URL: "/v1/order-{order}.json", Query: []string{"amount", "note", "tags", "q"}},
			`{"order":".."}`,
			seen{"DELETE", "/v1/order-...json", "", "", sent, ""},
		},
		"delete with the rest": {
			HTTPConfig{Method: "DELETE", URL: "/{order}"},
			`{"note":"x","order":"1"}`,
			seen{"DELETE", "/1", "", `{"note":"x"}`, sent, "application/json"},
		},
		"post without a rest": {
			HTTPConfig{Method: "POST", URL: "/{order}"},
			`{"order":"1"}`,
			seen{"POST", "/1", "", `{}`, sent, "application/json"},
		},
		"a GET that is not known to only read": {
			HTTPConfig{URL: "/{order}", Query: []string{"amount", "note", "tags", "q"}},
			`{"order":"1"}`,
			seen{"GET", "/1", "", "", sent, ""},
		},
		"another type": {
			HTTPConfig{Method: "PATCH", URL: "/{order}", Headers: map[string]string{"Content-Type": "application/merge-patch+json"}},
			`{"order":"1"}`,
			seen{"PATCH", "/1", "", "{}", sent, "application/merge-patch+json"},
		},
	}
	for name, c := range cases {
		before := len(b.asked())
		c.config.URL = b.URL + c.config.URL
		if r, err := do(t, newHTTP(t, c.config), c.args); err != nil || string(r.Data) != "done" {
			t.Errorf("%s: %q, %v", name, r.Data, err)
			continue
		}
		if diff := cmp.Diff([]seen{c.want}, b.asked()[before:]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestArgumentsCannotLeaveTheirPlace(t *testing.T) {
	t.Parallel()
	b := serve(t, ok)
	tool := newHTTP(t, HTTPConfig{Method: "POST", URL: b.URL + "/orders/{order}/x"})
	for _, order := range []string{
		`""`, `"."`, `".."`, `"../admin"`, `"a/../b"`, `"..\\admin"`, `"a\nb"`, `"a\u0000b"`, `null`, `{}`, `["x"]`,
		`"` + strings.Repeat("x", maxURL) + `"`,
	} {
		_, err := do(t, tool, `{"order":`+order+`}`)
		if err == nil || Meaning(err) != OutcomeFailed || len(err.Error()) > 300 {
			t.Errorf("%.40s: %v", order, err)
		}
	}
	if asked := b.asked(); len(asked) > 0 {
		t.Fatalf("the server was asked %v", asked)
	}
	for _, order := range []string{"@evil.example", "evil.example:80", "//evil.example", "?a=b", "#f", "%2e%2e", "%2F", "...", "a/b", ";x", "\u202e"} {
		raw, _ := json.Marshal(order)
		if _, err := do(t, tool, `{"order":`+string(raw)+`}`); err != nil {
			t.Errorf("%q: %v", order, err)
		}
	}
	for _, s := range b.asked() {
		if !strings.HasPrefix(s.Path, "/orders/") || !strings.HasSuffix(s.Path, "/x") || strings.Count(s.Path, "/") != 3 || s.Query != "" {
			t.Errorf("reached %s?%s", s.Path, s.Query)
		}
	}
}

func TestHTTPConfigIsRefusedAtStart(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		config HTTPConfig
		want   string
	}{
		"host":             {HTTPConfig{URL: "https://{order}.example.com/"}, "scheme, host or port"},
		"whole host":       {HTTPConfig{URL: "https://{order}/"}, "scheme, host or port"},
		"host's end":       {HTTPConfig{URL: "https://example.com{order}"}, "scheme, host or port"},
		"port":             {HTTPConfig{URL: "https://example.com:{order}/"}, "URL"},
		"scheme":           {HTTPConfig{URL: "{order}://example.com/"}, "URL"},
		"scheme upper":     {HTTPConfig{URL: "HTTPS://example.com/{order}"}, "lower case"},
		"user":             {HTTPConfig{URL: "https://u:p@example.com/{order}"}, "Authorization"},
		"fragment":         {HTTPConfig{URL: "https://example.com/{order}#{note}"}, "fragment"},
		"other scheme":     {HTTPConfig{URL: "ftp://example.com/{order}"}, "http or https"},
		"no host":          {HTTPConfig{URL: "/orders/{order}"}, "http or https"},
		"no URL":           {HTTPConfig{}, "http or https"},
		"query name":       {HTTPConfig{URL: "https://example.com/{order}?{note}=1"}, "name of a query value"},
		"open brace":       {HTTPConfig{URL: "https://example.com/{order"}, "begins no"},
		"close brace":      {HTTPConfig{URL: "https://example.com/order}"}, "without a {"},
		"empty brace":      {HTTPConfig{URL: "https://example.com/{}"}, "begins no"},
		"slash in brace":   {HTTPConfig{URL: "https://example.com/{a/b}"}, "begins no"},
		"unknown":          {HTTPConfig{URL: "https://example.com/{nobody}"}, "not among its parameters"},
		"unknown query":    {HTTPConfig{URL: "https://example.com/", Query: []string{"nobody"}}, "not among its parameters"},
		"optional in path": {HTTPConfig{Method: "POST", URL: "https://example.com/{note}"}, "do not require"},
		"sent nowhere":     {HTTPConfig{URL: "https://example.com/{order}"}, "sent nowhere"},
		"method":           {HTTPConfig{Method: "post", URL: "https://example.com/{order}"}, "unknown method"},
		"body":             {HTTPConfig{Method: "POST", Body: "xml", URL: "https://example.com/{order}"}, "unknown body"},
		"body of a GET":    {HTTPConfig{Body: "json", URL: "https://example.com/{order}"}, "has no body"},
		"bound":            {HTTPConfig{Method: "POST", URL: "https://example.com/{order}", MaxResult: -1}, "negative"},
		"header name":      {HTTPConfig{Method: "POST", URL: "https://example.com/{order}", Headers: map[string]string{"X Y": "1"}}, "not the name"},
		"header of ours":   {HTTPConfig{Method: "POST", URL: "https://example.com/{order}", Headers: map[string]string{"idempotency-key": "1"}}, "cannot be set"},
		"header value":     {HTTPConfig{Method: "POST", URL: "https://example.com/{order}", Headers: map[string]string{"X": "s3cret\n"}}, "control character"},
		"lost reference":   {HTTPConfig{Method: "POST", URL: "https://example.com/{order}", HeaderRefs: map[string]string{"X": "env:X"}}, "no value"},
		"no parameters":    {HTTPConfig{Method: "POST", URL: "https://example.com/{order}", Parameters: json.RawMessage(`[]`)}, "type"},
	}
	for name, c := range cases {
		c.config.Name = "pay"
		if c.config.Parameters == nil {
			c.config.Parameters = json.RawMessage(payParameters)
		}
		_, err := NewHTTP(c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `tool "pay"`) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v does not say %q", name, err, c.want)
		}
	}
}

func TestHTTPVersionHasReferencesAndNoSecrets(t *testing.T) {
	t.Parallel()
	version := func(change func(*HTTPConfig)) agent.Digest {
		c := HTTPConfig{
			Method: "POST", URL: "https://example.com/{order}",
			Headers:    map[string]string{"Authorization": "one", "X-Plain": "one"},
			HeaderRefs: map[string]string{"Authorization": "env:TOKEN"},
		}
		change(&c)
		return newHTTP(t, c).Spec().Version
	}
	base := version(func(*HTTPConfig) {})
	if base != version(func(c *HTTPConfig) { c.Headers["Authorization"] = "two" }) {
		t.Error("a rotated secret changed the version")
	}
	seen := map[agent.Digest]string{base: "no part of the version"}
	for name, v := range map[string]agent.Digest{
		"reference": version(func(c *HTTPConfig) { c.HeaderRefs["Authorization"] = "env:OTHER" }),
		"header":    version(func(c *HTTPConfig) { c.Headers["X-Plain"] = "two" }),
		"reconcile": version(func(c *HTTPConfig) { c.Reconcile = &HTTPAsk{URL: "https://example.org/", Found: "true"} }),
		"found":     version(func(c *HTTPConfig) { c.Reconcile = &HTTPAsk{URL: "https://example.org/", Found: "false"} }),
		"absent": version(func(c *HTTPConfig) {
			c.Reconcile = &HTTPAsk{URL: "https://example.org/", Found: "true", Absent: "true"}
		}),
		"observe":      version(func(c *HTTPConfig) { c.Observe = &HTTPAsk{URL: "https://example.org/"} }),
		"irreversible": version(func(c *HTTPConfig) { c.Irreversible = true }),
		"compensate":   version(func(c *HTTPConfig) { c.Compensate = &Compensation{Tool: "void"} }),
		"url":          version(func(c *HTTPConfig) { c.URL = "https://example.org/{order}" }),
		"method":       version(func(c *HTTPConfig) { c.Method = "PUT" }),
		"query":        version(func(c *HTTPConfig) { c.Query = []string{"note"} }),
		"private":      version(func(c *HTTPConfig) { c.AllowPrivate = true }),
		"class":        version(func(c *HTTPConfig) { c.Class = agent.ClassIdempotent }),
	} {
		if other, ok := seen[v]; ok {
			t.Errorf("%s is %s", name, other)
		}
		seen[v] = "the same as " + name
	}
}

func TestTheKeyIsAStructuredFieldString(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{key: `"` + key + `"`, `a"b\c`: `"a\"b\\c"`, "": "", "é": "", "a\n": "", "a\x7f": ""} {
		got, err := structuredString(in)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v", in, got, err)
		}
	}
	b := serve(t, ok)
	if _, err := newHTTP(t, HTTPConfig{Method: "POST", URL: b.URL}).Do(t.Context(), Call{Args: `{"order":"1"}`}); err == nil {
		t.Error("sent without a key")
	}
	if n := len(b.asked()); n > 0 {
		t.Errorf("sent %d times", n)
	}
}

func TestArgumentsThatNobodyAskedForAreNotLost(t *testing.T) {
	t.Parallel()
	b := serve(t, ok)
	tool := newHTTP(t, HTTPConfig{URL: b.URL + "/{order}", Query: []string{"amount", "note", "tags", "q"}})
	if _, err := do(t, tool, `{"order":"1","surprise":1}`); Meaning(err) != OutcomeFailed || !strings.Contains(err.Error(), "surprise") {
		t.Errorf("got %v", err)
	}
}

func FuzzTarget(f *testing.F) {
	for _, s := range []string{"x", "", "..", "../a", "a/b", "@h", "\\..\\", "%2e", "a\x00", "é\u202e", "http://evil.example/"} {
		f.Add(s, s)
	}
	tgt, err := parseTarget("https://example.com:8443/a/{p}/b-{p}?k={q}&l=x{q}", []string{"q"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, p, q string) {
		rawP, _ := json.Marshal(p)
		rawQ, _ := json.Marshal(q)
		u, err := tgt.url(map[string]json.RawMessage{"p": rawP, "q": rawQ})
		if err != nil {
			return
		}
		if u.Scheme != "https" || u.Host != "example.com:8443" || u.User != nil || u.Fragment != "" || u.Opaque != "" {
			t.Fatalf("%q, %q made %s", p, q, u)
		}
		steps := strings.Split(u.EscapedPath(), "/")
		if len(steps) != 4 || steps[1] != "a" || steps[2] == "" || steps[2] == "." || steps[2] == ".." || !strings.HasPrefix(steps[3], "b-") {
			t.Fatalf("%q made the path %s", p, u.EscapedPath())
		}
		var want string
		if err := json.Unmarshal(rawQ, &want); err != nil {
			t.Fatal(err)
		}
		query := u.Query()
		if len(query) != 3 || query.Get("k") != want || query.Get("l") != "x"+want || query.Get("q") != want {
			t.Fatalf("%q made the query %s", q, u.RawQuery)
		}
	})
}
