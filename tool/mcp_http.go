package tool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/holdfast-run/holdfast/internal/secret"
)

// mcpHTTP carries the requests of the SDK's HTTP transport. It adds the configured headers, and for a
// request with a [flight] it finds out what was sent and reads the answer itself: the SDK would break the
// connection, and with it everybody's calls, over an answer that is too large, no JSON or an HTTP error.
type mcpHTTP struct {
	base    http.RoundTripper
	host    string // the only one that gets the headers
	headers map[string]string
	mask    *secret.Mask // of their secret values
	max     int          // bytes of one answer
}

func newMCPHTTP(c MCPConfig, maxAnswer int) *http.Client {
	u, err := url.Parse(c.URL)
	if err != nil {
		u = &url.URL{} // checkMCP parsed it
	}
	// No connection is kept: one that turned out to be dead would make a call uncertain.
	base := newTransport(newGuard(u, c.AllowPrivate, c.Refuse), false)
	return &http.Client{
		Transport:     &mcpHTTP{base: base, host: u.Host, headers: c.Headers, mask: secret.New(headerSecrets(c.Headers, c.HeaderRefs)...), max: maxAnswer},
		CheckRedirect: redirects,
	}
}

// movedOnHost says whether resp sends the same request to another path: some servers do, to add a slash.
// The other redirects would turn a POST into a GET.
func movedOnHost(r *http.Request, resp *http.Response) bool {
	if resp.StatusCode != http.StatusTemporaryRedirect && resp.StatusCode != http.StatusPermanentRedirect {
		return false
	}
	u, err := resp.Location()
	return err == nil && u.Host == r.URL.Host && u.Scheme == r.URL.Scheme
}

// A statusError is an HTTP answer that is not 2xx.
type statusError struct {
	code    int
	session bool // the request named a session
	text    string
	after   time.Duration // what the server asks to wait
}

func (e *statusError) Error() string {
	return fmt.Sprintf("answered HTTP %d %s%s", e.code, http.StatusText(e.code), e.text)
}

// sessionGone says that the server does not know the session any more, as the protocol has it answer:
// nothing was done, and a new session is needed.
func (e *statusError) sessionGone() bool { return e.code == http.StatusNotFound && e.session }

// definite says that the server said no. Something may have been done before a redirect that would not
// repeat the request.
func (e *statusError) definite() bool {
	switch e.code {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return e.code >= 400 && e.code < 500
}

const maxResumes = 3

func (t *mcpHTTP) RoundTrip(r *http.Request) (*http.Response, error) {
	f := flightOf(r.Context())
	ctx := r.Context()
	if f != nil {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
			if !f.begin() {
				bar(c.Conn)
			}
		}})
	}
	r = r.Clone(ctx)
	if r.URL.Host == t.host {
		for k, v := range t.headers {
			r.Header.Set(k, v)
		}
	}
	resp, err := t.base.RoundTrip(r)
	if f == nil {
		return resp, err
	}
	if err != nil {
		// The SDK takes a broken answer stream up again and ends the connection when that fails.
		if r.Method == http.MethodGet && f.resume.Add(1) >= maxResumes {
			f.fail(fmt.Errorf("the answer broke off and could not be taken up again: %w", err))
		}
		return nil, err
	}
	if err := t.receive(r, resp, f); err != nil {
		resp.Body.Close()
		var status *statusError
		if r.Method == http.MethodGet && errors.As(err, &status) {
			// What it says is about the resumption: the call itself was accepted before.
			err = fmt.Errorf("the answer broke off and could not be taken up again: the server %s", status.Error())
		}
		f.fail(err)
		return nil, err
	}
	return resp, nil
}

// receive checks the answer and puts one that is safe for the SDK in its place.
func (t *mcpHTTP) receive(r *http.Request, resp *http.Response, f *flight) error {
	if movedOnHost(r, resp) {
		return nil // the HTTP client follows
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &statusError{
			code: resp.StatusCode, session: r.Header.Get("Mcp-Session-Id") != "",
			text: printable(errorBody(resp.Body, t.mask)), after: retryAfter(resp),
		}
	}
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch kind {
	case jsonType:
		return t.readJSON(resp, f)
	case "text/event-stream":
		resp.Body = newEventFilter(resp.Body, t.max, f)
		return nil
	}
	return fmt.Errorf("the server answered with content of type %.80q, not JSON or an event stream", kind)
}

func (t *mcpHTTP) readJSON(resp *http.Response, f *flight) error {
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, int64(t.max)+1))
	if err != nil {
		return fmt.Errorf("the server's answer broke off: %w", err)
	}
	if len(b) > t.max {
		return errAnswerTooLarge
	}
	b, err = f.screen(b)
	if err != nil {
		return err
	}
	resp.Body = io.NopCloser(bytes.NewReader(b))
	resp.ContentLength = int64(len(b))
	return nil
}

// screen reads one message of the answer to f. It returns the message for the SDK, nil for one that the
// SDK need not see.
func (f *flight) screen(b []byte) ([]byte, error) {
	m, err := jsonrpc.DecodeMessage(b)
	if err != nil {
		return nil, fmt.Errorf("the server's answer cannot be read: %w", err)
	}
	switch msg := m.(type) {
	case *jsonrpc.Response:
		return jsonrpc.EncodeMessage(f.take(msg))
	case *jsonrpc.Request:
		if !msg.IsCall() && msg.Method != toolsChanged {
			return nil, nil
		}
		if f.asked.Add(1) > maxAsked {
			return nil, errors.New("the server asks for something again and again instead of answering")
		}
	}
	return jsonrpc.EncodeMessage(m) // on one line, whatever it was
}

// maxAsked bounds the requests of its own that a server sends before it answers one.
const maxAsked = 100
