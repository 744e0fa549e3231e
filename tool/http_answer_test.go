package tool

import (
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

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

func TestASecretThatAnErrorEchoesIsMaskedBeforeItIsCut(t *testing.T) {
	t.Parallel()
	const token = "hunter2-is-the-secret"
	b := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		at := maxErrorBody - len(token) + 1
		fmt.Fprint(w, strings.Repeat("x", at)+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")+strings.Repeat("y", 9000))
	})
	tool := newHTTP(t, HTTPConfig{
		Method: "POST", URL: b.URL + "/{order}",
		Headers: map[string]string{"Authorization": "Bearer " + token}, HeaderRefs: map[string]string{"Authorization": "env:TOKEN"},
	})
	_, err := do(t, tool, `{"order":"1"}`)
	if err == nil || strings.Contains(err.Error(), token[:6]) || len(err.Error()) > maxErrorBody+300 {
		t.Errorf("error ends in %q", err.Error()[len(err.Error())-80:])
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
