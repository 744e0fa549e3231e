package tool

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

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
			HTTPConfig{Method: "DELETE", URL: "/{order}"}, `{"note":"x","order":"1"}`,
			seen{"DELETE", "/1", "", `{"note":"x"}`, sent, "application/json"},
		},
		"post without a rest": {
			HTTPConfig{Method: "POST", URL: "/{order}"}, `{"order":"1"}`,
			seen{"POST", "/1", "", `{}`, sent, "application/json"},
		},
		"a GET that is not known to only read": {
			HTTPConfig{URL: "/{order}", Query: []string{"amount", "note", "tags", "q"}}, `{"order":"1"}`,
			seen{"GET", "/1", "", "", sent, ""},
		},
		"another type": {
			HTTPConfig{Method: "PATCH", URL: "/{order}", Headers: map[string]string{"Content-Type": "application/merge-patch+json"}}, `{"order":"1"}`,
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
	for name, v := range map[string]agent.Digest{
		"reference": version(func(c *HTTPConfig) { c.HeaderRefs["Authorization"] = "env:OTHER" }),
		"header":    version(func(c *HTTPConfig) { c.Headers["X-Plain"] = "two" }),
		"url":       version(func(c *HTTPConfig) { c.URL = "https://example.org/{order}" }),
		"method":    version(func(c *HTTPConfig) { c.Method = "PUT" }),
		"query":     version(func(c *HTTPConfig) { c.Query = []string{"note"} }),
		"private":   version(func(c *HTTPConfig) { c.AllowPrivate = true }),
		"class":     version(func(c *HTTPConfig) { c.Class = agent.ClassIdempotent }),
	} {
		if v == base {
			t.Errorf("%s is no part of the version", name)
		}
	}
}

func TestStatusSaysWhatHappened(t *testing.T) {
	t.Parallel()
	b := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var code int
		fmt.Sscanf(r.URL.Path, "/%d", &code)
		w.WriteHeader(code)
		fmt.Fprint(w, "the order is closed "+strings.Repeat("x", 5000))
	})
	for code := range 600 {
		if code < 200 || http.StatusText(code) == "" {
			continue
		}
		want := OutcomeFailed
		switch {
		case code < 300:
			want = ""
		case code == 408, code == 409, code == 425, code == 429, code >= 500:
			want = OutcomeAmbiguous
		case code < 400 && code != 307 && code != 308:
			want = OutcomeAmbiguous
		}
		tool := newHTTP(t, HTTPConfig{Method: "POST", URL: b.URL + "/{order}"})
		_, err := do(t, tool, fmt.Sprintf(`{"order":"%d"}`, code))
		if want == "" {
			if err != nil {
				t.Errorf("%d: %v", code, err)
			}
			continue
		}
		if err == nil || Meaning(err) != want || !strings.Contains(err.Error(), fmt.Sprint(code)) || len(err.Error()) > maxErrorBody+300 {
			t.Errorf("%d: %s: %.300s", code, Meaning(err), err)
		}
		if code != 304 && err != nil && !strings.Contains(err.Error(), "the order is closed") {
			t.Errorf("%d: its body is not told", code)
		}
	}
	if got := len(b.asked()); got < 50 {
		t.Errorf("%d requests", got)
	}
}

func TestRetryAfterIsReadInBothForms(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for in, want := range map[string]time.Duration{
		"": 0, "2": 2 * time.Second, "0": 0, "-1": 0, "soon": 0, "1.5": 0,
		"2000000000":           maxRetryAfter,
		"99999999999999999999": 0,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second,
		now.Add(-time.Hour).Format(http.TimeFormat):       0,
		now.Add(1000 * time.Hour).Format(http.TimeFormat): maxRetryAfter,
	} {
		b := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", now.Format(http.TimeFormat))
			w.Header().Set("Retry-After", in)
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		_, err := do(t, newHTTP(t, HTTPConfig{Method: "POST", URL: b.URL}), `{"order":"1"}`)
		if got := RetryAfter(err); got != want || Meaning(err) != OutcomeAmbiguous {
			t.Errorf("%q: got %s, want %s (%v)", in, got, want, err)
		}
	}
}

func TestWhatNeverHadAConnectionWasNotSent(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := closed.Addr().String()
	closed.Close()
	untrusted := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") }))
	untrusted.Config.ErrorLog = quiet()
	t.Cleanup(untrusted.Close)
	plain := serve(t, ok)
	for name, url := range map[string]string{
		"closed port":    "http://" + port,
		"no such host":   "http://no-such-host.invalid",
		"untrusted TLS":  untrusted.URL,
		"TLS with plain": strings.Replace(plain.URL, "http:", "https:", 1),
	} {
		_, err := do(t, newHTTP(t, HTTPConfig{Method: "POST", URL: url, Timeout: 5 * time.Second}), `{"order":"1"}`)
		if err == nil || Meaning(err) != OutcomeNotSent {
			t.Errorf("%s: %s: %v", name, Meaning(err), err)
		}
	}
	if asked := plain.asked(); len(asked) > 0 {
		t.Errorf("the server was asked %v", asked)
	}
}

// hangUp takes over the connection after the request was read whole and treats it as told.
func hangUp(t *testing.T, before string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(c, before)
		c.Close()
	}
}

func TestWhatGoesWrongAfterwardsIsAmbiguous(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"closed":        "",
		"half a status": "HTTP/1.1 20",
		"not HTTP":      "SSH-2.0-x\r\n\r\n",
		"half a body":   "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
		"bad gzip":      "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nhalf",
		"huge header":   "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2<<20) + "\r\n\r\n",
	} {
		b := serve(t, hangUp(t, answer))
		_, err := do(t, newHTTP(t, HTTPConfig{Method: "POST", URL: b.URL}), `{"order":"1"}`)
		if err == nil || Meaning(err) != OutcomeAmbiguous || len(err.Error()) > 500 {
			t.Errorf("%s: %s: %.300v", name, Meaning(err), err)
		}
		if n := len(b.asked()); n != 1 {
			t.Errorf("%s: sent %d times", name, n)
		}
	}
}

// net/http sends a request with an Idempotency-Key again by itself when a kept connection dies. The
// decision to send again is not its to take.
func TestARequestIsSentOnceEvenOverAKeptConnection(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "POST", "DELETE"} {
		var b *books
		b = serve(t, func(w http.ResponseWriter, r *http.Request) {
			if len(b.asked()) == 1 {
				ok(w, r)
				return
			}
			hangUp(t, "")(w, r)
		})
		tool := newHTTP(t, HTTPConfig{Method: method, URL: b.URL + "/{order}", Query: []string{"amount", "note", "tags", "q"}})
		if _, err := do(t, tool, `{"order":"1"}`); err != nil {
			t.Fatal(err)
		}
		if _, err := do(t, tool, `{"order":"2"}`); Meaning(err) != OutcomeAmbiguous {
			t.Errorf("%s: %v", method, err)
		}
		if asked := b.asked(); len(asked) != 2 {
			t.Errorf("%s: sent %d times: %v", method, len(asked), asked)
		}
	}
}

func TestRedirectsStayOnTheHostAndKeepTheRequest(t *testing.T) {
	t.Parallel()
	other := serve(t, ok)
	for _, c := range []struct {
		method string
		class  agent.Class
		code   int
		to     string
		want   Outcome // "" is followed
	}{
		{"GET", agent.ClassRead, 302, "/end", ""},
		{"GET", agent.ClassRead, 308, "/end", ""},
		{"GET", agent.ClassRead, 302, other.URL + "/end", OutcomeFailed},
		{"GET", agent.ClassRead, 302, "https://{host}/end", OutcomeFailed},
		{"GET", agent.ClassRead, 302, "http://user@{host}/end", OutcomeFailed},
		{"GET", agent.ClassRead, 302, "/loop", OutcomeFailed},
		{"POST", agent.ClassOnce, 307, "/end", ""},
		{"POST", agent.ClassOnce, 308, "/end", ""},
		{"POST", agent.ClassOnce, 301, "/end", OutcomeAmbiguous},
		{"POST", agent.ClassOnce, 302, "/end", OutcomeAmbiguous},
		{"POST", agent.ClassOnce, 303, "/end", OutcomeAmbiguous},
		{"POST", agent.ClassOnce, 307, other.URL + "/end", OutcomeFailed},
		{"POST", agent.ClassRead, 303, "/end", OutcomeFailed},
		{"DELETE", agent.ClassIdempotent, 308, "/end", ""},
	} {
		b := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/end" {
				ok(w, r)
				return
			}
			w.Header().Set("Location", strings.ReplaceAll(c.to, "{host}", r.Host))
			w.WriteHeader(c.code)
		})
		tool := newHTTP(t, HTTPConfig{Method: c.method, Class: c.class, URL: b.URL + "/start?o={order}", Query: []string{"amount", "note", "tags", "q"}})
		_, err := do(t, tool, `{"amount":1,"order":"1"}`)
		asked := b.asked()
		if c.want != "" {
			if err == nil || Meaning(err) != c.want || c.to != "/loop" && len(asked) != 1 || len(asked) > maxRedirects+1 {
				t.Errorf("%s %d to %s: %d requests, %s: %v", c.method, c.code, c.to, len(asked), Meaning(err), err)
			}
			continue
		}
		if err != nil || len(asked) != 2 {
			t.Errorf("%s %d to %s: %d requests, %v", c.method, c.code, c.to, len(asked), err)
			continue
		}
		end, start := asked[1], asked[0]
		if end.Method != c.method || end.Body != start.Body || end.Key != start.Key {
			t.Errorf("%s %d: %+v became %+v", c.method, c.code, start, end)
		}
	}
	if asked := other.asked(); len(asked) > 0 {
		t.Errorf("another host was asked %v", asked)
	}
}

func TestAnAnswerIsBounded(t *testing.T) {
	t.Parallel()
	b := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bomb" {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			defer z.Close()
			for range 1 << 10 {
				if _, err := z.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
			return
		}
		fmt.Fprint(w, strings.Repeat("x", 1001))
	})
	for _, path := range []string{"/plain", "/bomb"} {
		c := HTTPConfig{Method: "POST", URL: b.URL + path, MaxResult: 1000, Class: agent.ClassRead}
		if _, err := do(t, newHTTP(t, c), `{"order":"1"}`); Meaning(err) != OutcomeFailed || !strings.Contains(err.Error(), "more than 1000 bytes") {
			t.Errorf("%s, a read: %v", path, err)
		}
		c.Class = agent.ClassOnce
		r, err := do(t, newHTTP(t, c), `{"order":"1"}`)
		if err != nil || !strings.Contains(string(r.Data), "more than 1000 bytes") {
			t.Errorf("%s, done: %q, %v", path, r.Data, err)
		}
	}
	c := HTTPConfig{Method: "POST", URL: b.URL, MaxResult: 1001}
	if r, err := do(t, newHTTP(t, c), `{"order":"1"}`); err != nil || len(r.Data) != 1001 {
		t.Errorf("as long as allowed: %d, %v", len(r.Data), err)
	}
}

func TestAnAnswerKeepsItsType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ header, body, want string }{
		{"application/json", "{}", "application/json"},
		{"Text/HTML; Charset=UTF-8", "x", "text/html; charset=UTF-8"},
		{"image/png", "\x89PNG", "image/png"},
		{"", "text", ""},
		{"", "\xff", "application/octet-stream"},
		{"x y z", "text", ""},
		{"text/" + strings.Repeat("x", 300), "text", ""},
	} {
		b := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = nil
			if c.header != "" {
				w.Header().Set("Content-Type", c.header)
			}
			fmt.Fprint(w, c.body)
		})
		r, err := do(t, newHTTP(t, HTTPConfig{Method: "POST", URL: b.URL}), `{"order":"1"}`)
		if err != nil || r.Type != c.want || string(r.Data) != c.body {
			t.Errorf("%q: got %q of %q, %v", c.header, r.Data, r.Type, err)
		}
	}
}

func TestASlowAnswerEndsAtTheTimeout(t *testing.T) {
	t.Parallel()
	for name, early := range map[string]string{"no answer": "", "slow body": "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"} {
		release := make(chan struct{})
		b := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			io.WriteString(c, early)
			<-release
		})
		tool := newHTTP(t, HTTPConfig{Method: "POST", URL: b.URL, Timeout: 100 * time.Millisecond})
		_, err := do(t, tool, `{"order":"1"}`)
		if err == nil || Meaning(err) != OutcomeAmbiguous || !strings.Contains(err.Error(), "within 100ms") {
			t.Errorf("%s: %v", name, err)
		}
		close(release)
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
