package tool

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

// asking is a tool that can be asked at a server.
func asking(t *testing.T, url string, q HTTPAsk) HTTPConfig {
	t.Helper()
	q.URL = url + q.URL
	return HTTPConfig{
		Name: "pay", Method: "POST", URL: url + "/refunds", Parameters: json.RawMessage(payParameters),
		Class: agent.ClassReconcilable, Reconcile: &q, Timeout: 5 * time.Second,
	}
}

func reconcile(t *testing.T, c HTTPConfig, args string) (Finding, Result, error) {
	t.Helper()
	r, ok := AsReconciler(newHTTP(t, c))
	if !ok {
		t.Fatal("the tool cannot be asked")
	}
	return r.Reconcile(t.Context(), Call{Key: key, Args: args})
}

func TestTheDestinationsAnswerIsFoundAbsentOrUnknown(t *testing.T) {
	t.Parallel()
	const found, absent = `status == 200 && body.refunds.size() > 0`, `status == 404 || status == 200 && body.refunds.size() == 0`
	for title, a := range map[string]struct {
		status        int
		body          string
		found, absent string
		want          Finding
		err           string
	}{
		"found":                      {200, `{"refunds":[{"id":"re_1"}]}`, found, absent, Found, ""},
		"an empty list":              {200, `{"refunds":[]}`, found, absent, Absent, ""},
		"not found":                  {404, `no such refund`, found, absent, Absent, ""},
		"not JSON":                   {200, `<html>`, found, absent, Unknown, "found cannot be told"},
		"another form":               {200, `{"refunds":17}`, found, absent, Unknown, "found cannot be told"},
		"null":                       {200, `null`, found, absent, Unknown, "found cannot be told"},
		"neither":                    {400, `{}`, found, absent, Unknown, "neither"},
		"both":                       {200, `{}`, `status == 200`, `status < 300`, Unknown, "both hold"},
		"absent cannot be told":      {200, `{}`, `status == 200`, `body.none`, Unknown, "absent cannot be told"},
		"no absent":                  {404, `{}`, `status == 200`, ``, Unknown, "neither"},
		"text":                       {200, `re_1 done`, `text.startsWith("re_")`, ``, Found, ""},
		"a number of many digits":    {200, `{"n":123456789012345678901234567890}`, `body.n > 1`, `status == 200`, Unknown, "more digits"},
		"broken server":              {500, `{}`, `false`, `true`, Unknown, "says nothing"},
		"not let in":                 {401, `{}`, `false`, `true`, Unknown, "says nothing"},
		"not allowed":                {403, `{}`, `false`, `true`, Unknown, "says nothing"},
		"no such method":             {405, `{}`, `false`, `true`, Unknown, "says nothing"},
		"busy":                       {429, `{}`, `false`, `true`, Unknown, "says nothing"},
		"moved":                      {301, `{}`, `false`, `true`, Unknown, "says nothing"},
		"more than can be looked at": {200, strings.Repeat("x", 5<<20), `true`, ``, Unknown, "ask for less"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			b := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(a.status)
				fmt.Fprint(w, a.body)
			})
			got, r, err := reconcile(t, asking(t, b.URL, HTTPAsk{URL: "/refunds?key={key}", Found: a.found, Absent: a.absent}), `{"order":"42"}`)
			if got != a.want || (a.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), a.err) {
				t.Errorf("%s, %v, want %s and an error with %q", got, err, a.want, a.err)
			}
			if want := map[bool]string{true: a.body}[a.want == Found]; string(r.Data) != want {
				t.Errorf("result %q, want %q", r.Data, want)
			}
		})
	}
}

func TestAnAskIsAGETWithKeyAndArgumentsInTheirPlaces(t *testing.T) {
	t.Parallel()
	b := serve(t, ok)
	escaped := "s~01234567:turn-1%2F2.3%2F0123456789abcdef"
	inQuery := "s~01234567%3Aturn-1%2F2.3%2F0123456789abcdef"
	for title, c := range map[string]struct {
		url   string
		query []string
		args  string
		want  seen
	}{
		"key in the path":    {"/refunds/{key}", nil, `{"order":"1"}`, seen{"GET", "/refunds/" + escaped, "", "", "", ""}},
		"key as a value":     {"/refunds?key={key}", nil, `{"order":"1"}`, seen{"GET", "/refunds", "key=" + inQuery, "", "", ""}},
		"business reference": {"/orders/{order}/refunds?amount={amount}", []string{"note"}, `{"order":"4/2","amount":9007199254740993.10}`, seen{"GET", "/orders/4%2F2/refunds", "amount=9007199254740993.10", "", "", ""}},
		"given when given":   {"/refunds", []string{"note", "tags"}, `{"order":"1","note":"a&b","tags":[1,2]}`, seen{"GET", "/refunds", "note=a%26b&tags=1&tags=2", "", "", ""}},
	} {
		t.Run(title, func(t *testing.T) {
			before := len(b.asked())
			f, _, err := reconcile(t, asking(t, b.URL, HTTPAsk{URL: c.url, Query: c.query, Found: "text == 'done'"}), c.args)
			if err != nil || f != Found {
				t.Fatalf("%s, %v", f, err)
			}
			if diff := cmp.Diff([]seen{c.want}, b.asked()[before:]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Without its filter a list of everything would be taken for this call's.
func TestAnAskWithoutWhatItsURLNamesIsNotSent(t *testing.T) {
	t.Parallel()
	b := serve(t, ok)
	for _, args := range []string{`{"order":"1"}`, `{"order":"1","note":null}`, `{"order":"1","note":""}`, `{"order":"1","note":["x"]}`, `[]`} {
		f, _, err := reconcile(t, asking(t, b.URL, HTTPAsk{URL: "/refunds?note={note}", Found: "true"}), args)
		if f != Unknown || err == nil {
			t.Errorf("%s: %s, %v", args, f, err)
		}
	}
	for _, args := range []string{`{"order":".."}`, `{"order":"a\u0000"}`} {
		f, _, err := reconcile(t, asking(t, b.URL, HTTPAsk{URL: "/refunds/{order}", Found: "true"}), args)
		if f != Unknown || err == nil {
			t.Errorf("%s: %s, %v", args, f, err)
		}
	}
	if n := len(b.asked()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestADestinationThatDoesNotAnswerLeavesItUnknown(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	hangs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hang":
			select {
			case <-release:
			case <-r.Context().Done():
			}
		case "/cut":
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "{")
		case "/elsewhere":
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		}
	}))
	t.Cleanup(hangs.Close)
	for _, path := range []string{"/hang", "/cut", "/elsewhere"} {
		c := asking(t, hangs.URL, HTTPAsk{URL: path, Found: "true", Absent: "status == 302"})
		c.Timeout = 200 * time.Millisecond
		if f, _, err := reconcile(t, c, `{"order":"1"}`); f != Unknown || err == nil {
			t.Errorf("%s: %s, %v", path, f, err)
		}
	}
	c := asking(t, "http://127.0.0.1:1", HTTPAsk{URL: "/", Found: "true"})
	if f, _, err := reconcile(t, c, `{"order":"1"}`); f != Unknown || err == nil {
		t.Errorf("nobody there: %s, %v", f, err)
	}
}

// "localhost" names a loopback address; another name that leads there is refused for asks as it is for calls.
func TestTheGuardHoldsForAsks(t *testing.T) {
	t.Parallel()
	b := serve(t, ok)
	at := strings.TrimPrefix(b.URL, "http://")
	c := asking(t, "", HTTPAsk{URL: b.URL + "/", Found: "true"})
	c.URL, c.Refuse = "http://payments.example.com/", []string{at}
	c.Reconcile.URL = strings.Replace(b.URL, "127.0.0.1", "localhost", 1) + "/"
	if f, _, err := reconcile(t, c, `{"order":"1"}`); f != Unknown || err == nil || !strings.Contains(err.Error(), "no tool may reach") {
		t.Errorf("%s, %v", f, err)
	}
	if n := len(b.asked()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestTheToolsHeadersGoOnlyToItsOwnPlace(t *testing.T) {
	t.Parallel()
	const token = "Bearer a-secret-token"
	echo := func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, r.Header.Get("Authorization"), r.Header.Get("X-Ask"))
	}
	own, other := serve(t, echo), serve(t, echo)
	for title, c := range map[string]struct {
		at      string
		headers map[string]string
		want    string
	}{
		"own":            {own.URL, nil, "Request: [secret]!"},
		"another's":      {other.URL, nil, "Request: !"},
		"another's, own": {other.URL, map[string]string{"authorization": "for-the-other"}, "Request: for-the-other!"},
		"overridden":     {own.URL, map[string]string{"authorization": "another"}, "Request: another!"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			h := asking(t, own.URL, HTTPAsk{Headers: map[string]string{"X-Ask": "!"}, Found: "false"})
			for name, value := range c.headers {
				h.Reconcile.Headers[name] = value
			}
			h.Reconcile.URL = c.at + "/"
			h.Headers, h.HeaderRefs = map[string]string{"Authorization": token}, map[string]string{"Authorization": "env:TOKEN"}
			_, _, err := reconcile(t, h, `{"order":"1"}`)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
			if strings.Contains(fmt.Sprint(err), "secret-token") {
				t.Errorf("the error shows the secret: %v", err)
			}
		})
	}
}

func TestTheStateIsStatusAndBody(t *testing.T) {
	t.Parallel()
	type answer struct {
		status int
		body   string
	}
	answers := make(chan answer, 1)
	b := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		a := <-answers
		w.Header().Set("Date", time.Now().String()) // what every answer has anew is no state
		w.WriteHeader(a.status)
		fmt.Fprint(w, a.body)
	})
	c := asking(t, b.URL, HTTPAsk{})
	c.Class, c.Reconcile = agent.ClassOnce, nil
	c.Observe = &HTTPAsk{URL: b.URL + "/orders/{order}"}
	c.Headers, c.HeaderRefs = map[string]string{"X-Key": "a-secret-key"}, map[string]string{"X-Key": "env:KEY"}
	tool := newHTTP(t, c)
	o, ok := AsObserver(tool)
	if _, asks := AsReconciler(tool); !ok || asks {
		t.Fatalf("observes %t, reconciles %t", ok, asks)
	}
	for _, x := range []struct {
		status     int
		body, want string
	}{
		{200, `{"b":1.10,"a":2}`, "200 OK\n{\"a\":2,\"b\":1.10}"},
		{200, ` {"a": 2, "b": 1.10} `, "200 OK\n{\"a\":2,\"b\":1.10}"},
		{200, `{"a":2,"b":1.1}`, "200 OK\n{\"a\":2,\"b\":1.1}"},
		{200, `asked with a-secret-key`, "200 OK\nasked with [secret]"},
		{202, `plain`, "202 Accepted\nplain"},
		{404, `{"at":"some time"}`, "404 Not Found\n"},
		{500, `{}`, ""},
		{403, `{}`, ""},
		{302, ``, ""},
	} {
		answers <- answer{x.status, x.body}
		r, err := o.Observe(t.Context(), Call{Key: key, Args: `{"order":"42"}`})
		if string(r.Data) != x.want || (x.want == "") != (err != nil) {
			t.Errorf("%d %s: %q, %v, want %q", x.status, x.body, r.Data, err, x.want)
		}
	}
	if got := b.asked()[0]; got.Path != "/orders/42" || got.Method != "GET" || got.Key != "" {
		t.Errorf("asked %+v", got)
	}
}

func TestBadAsksAreRefusedAtStart(t *testing.T) {
	t.Parallel()
	const at = "https://pay.example.com"
	ask := func(q HTTPAsk) func(*HTTPConfig) { return func(c *HTTPConfig) { c.Reconcile = &q } }
	for want, change := range map[string]func(*HTTPConfig){
		"its class is reconcilable": func(c *HTTPConfig) { c.Reconcile = nil },
		"it only reads, so nothing becomes": func(c *HTTPConfig) {
			c.Class, c.Method, c.Body, c.Query = "read", "GET", "none", []string{"order", "amount", "note", "tags", "q"}
		},
		"found is empty":                    ask(HTTPAsk{URL: at}),
		"found: \"status = 200\"":           ask(HTTPAsk{URL: at, Found: "status = 200"}),
		"absent: \"statos == 404\"":         ask(HTTPAsk{URL: at, Found: "true", Absent: "statos == 404"}),
		"uses {none}":                       ask(HTTPAsk{URL: at + "/{none}", Found: "true"}),
		`write "?key={key}"`:                ask(HTTPAsk{URL: at, Query: []string{"key"}, Found: "true"}),
		"not an http or https URL":          ask(HTTPAsk{URL: "ftp://x/", Found: "true"}),
		"in its scheme, host or port":       ask(HTTPAsk{URL: "https://{order}.example.com", Found: "true"}),
		"the header \"Host\" cannot be set": ask(HTTPAsk{URL: at, Found: "true", Headers: map[string]string{"Host": "x"}}),
		"has a reference and no value":      ask(HTTPAsk{URL: at, Found: "true", HeaderRefs: map[string]string{"X": "env:X"}}),
		"observe: found and absent belong":  func(c *HTTPConfig) { c.Observe = &HTTPAsk{URL: at, Found: "true"} },
		"has a parameter of that name": func(c *HTTPConfig) {
			c.Parameters = json.RawMessage(`{"type":"object","properties":{"key":{}}}`)
			c.Reconcile.URL = at + "?k={key}"
		},
		"absent_after is the delay of an answer":     func(c *HTTPConfig) { c.Class, c.Reconcile, c.AbsentAfter = "once", nil, time.Second },
		"irreversible and names what undoes it":      func(c *HTTPConfig) { c.Irreversible, c.Compensate = true, &Compensation{Tool: "void"} },
		`compensate: argument "a": "args.": line 1`:  func(c *HTTPConfig) { c.Compensate = &Compensation{Tool: "void", Args: map[string]string{"a": "args."}} },
		`what compensates it is called "files.void"`: func(c *HTTPConfig) { c.Compensate = &Compensation{Tool: "files.void"} },
		"unknown risk \"some\"":                      func(c *HTTPConfig) { c.Risk = "some" },
	} {
		c := HTTPConfig{
			Name: "pay", Method: "POST", URL: at, Parameters: json.RawMessage(payParameters),
			Class: agent.ClassReconcilable, Reconcile: &HTTPAsk{URL: at, Found: "true"},
		}
		change(&c)
		if _, err := NewHTTP(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// A cache on the way answers with what was so before the call.
func TestAnAnswerFromACacheProvesNothing(t *testing.T) {
	t.Parallel()
	for age, want := range map[string]Finding{"": Absent, "0": Absent, "7": Unknown, "x": Unknown} {
		b := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Cache-Control") != "no-cache" {
				t.Error("a cache may answer")
			}
			if age != "" {
				w.Header().Set("Age", age)
			}
			w.WriteHeader(http.StatusNotFound)
		})
		got, _, err := reconcile(t, asking(t, b.URL, HTTPAsk{URL: "/refunds?key={key}", Found: "status == 200", Absent: "status == 404"}), `{"order":"42"}`)
		if got != want || (err != nil) != (want == Unknown) {
			t.Errorf("age %q: %s, %v", age, got, err)
		}
	}
}
