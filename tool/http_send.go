package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/secret"
)

const (
	maxErrorBody  = 2 << 10        // bytes of an error's body that the model is shown
	maxEcho       = 16 << 10       // bytes beyond them in which a secret may end that is cut there
	maxRetryAfter = 24 * time.Hour // longer waits are cut
	maxRedirects  = 5
)

type httpTool struct {
	spec   Spec
	config HTTPConfig
	target *target
	client *http.Client
	mask   *secret.Mask // of the values of secret headers
	more   extras
}

func (t *httpTool) Spec() Spec     { return t.spec }
func (t *httpTool) extras() extras { return t.more }

// Do sends the request once.
func (t *httpTool) Do(ctx context.Context, c Call) (Result, error) {
	ctx, cancel := context.WithTimeout(ctx, t.spec.Timeout)
	defer cancel()
	// Once there is a connection, nobody can tell what went over it, unless it came too late.
	var connected atomic.Bool
	var late atomic.Pointer[error]
	gate := gateOf(ctx)
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) {
		if err := gate(); err != nil {
			late.Store(&err)
			bar(c.Conn)
			return
		}
		connected.Store(true)
	}})
	req, err := t.request(ctx, c)
	if err != nil {
		return Result{}, Failed(err)
	}
	resp, err := t.client.Do(req)
	if err != nil {
		if why := late.Load(); why != nil {
			err = *why
		}
		return Result{}, t.noAnswer(ctx, err, connected.Load())
	}
	defer resp.Body.Close()
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return Result{}, t.refusal(resp)
	}
	return t.result(ctx, resp)
}

func (t *httpTool) request(ctx context.Context, c Call) (*http.Request, error) {
	var args map[string]json.RawMessage
	if err := json.Unmarshal([]byte(c.Args), &args); err != nil {
		return nil, fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	u, err := t.target.url(args)
	if err != nil {
		return nil, err
	}
	body, err := t.body(c.Args, args)
	if err != nil {
		return nil, err
	}
	var r io.Reader
	if body != nil {
		r = bytes.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, t.config.Method, u.String(), r)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "holdfast")
	if body != nil {
		req.Header.Set("Content-Type", jsonType)
	}
	for name, value := range t.config.Headers {
		req.Header.Set(name, value)
	}
	if t.spec.Class == agent.ClassRead {
		return req, nil
	}
	key, err := structuredString(c.Key)
	req.Header.Set("Idempotency-Key", key)
	return req, err
}

// body returns the arguments that the URL does not take, values untouched; nil means no body.
func (t *httpTool) body(text string, args map[string]json.RawMessage) ([]byte, error) {
	rest, used := maps.Clone(args), false
	for _, name := range t.target.names() {
		_, ok := rest[name]
		delete(rest, name)
		used = used || ok
	}
	if t.config.Body == "none" {
		for name := range rest {
			return nil, fmt.Errorf("the argument %s is not one of the tool's; leave it out", clip(strconv.QuoteToASCII(name), 80))
		}
		return nil, nil
	}
	if len(rest) == 0 && t.config.Method == http.MethodDelete {
		return nil, nil // many servers refuse a DELETE with a body
	}
	if !used {
		return []byte(text), nil
	}
	return plainJSON(rest)
}

// structuredString writes a string of RFC 8941, section 3.3.3: printable ASCII in quotes.
func structuredString(s string) (string, error) {
	if s == "" {
		return "", errors.New("the call has no idempotency key")
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return "", fmt.Errorf("the idempotency key %q holds more than printable ASCII", s)
		}
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`, nil
}

// redirects follows nothing to another place, and no change of method.
func redirects(req *http.Request, via []*http.Request) error {
	first, status := via[0], req.Response.StatusCode
	safe := first.Method == http.MethodGet || first.Method == http.MethodHead
	repeats := status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
	same := req.URL.Scheme == first.URL.Scheme && strings.EqualFold(req.URL.Host, first.URL.Host) && req.URL.User == nil
	if !same || !safe && !repeats || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// noAnswer says what an error means that came instead of an answer.
func (t *httpTool) noAnswer(ctx context.Context, err error, connected bool) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the URL, which repeats the arguments
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %s: %w", t.spec.Timeout, err)
	}
	host := t.target.base.Host
	switch {
	case errors.Is(err, errRefused):
		return Failed(fmt.Errorf("%q was not connected to: %w", host, err))
	case !connected:
		return NotSent(fmt.Errorf("%q could not be reached: %w", host, err))
	default:
		return Ambiguous(fmt.Errorf("%q was asked, and then: %w", host, err))
	}
}

// refusal says what an answer means that is not 2xx.
func (t *httpTool) refusal(resp *http.Response) error {
	code := resp.StatusCode
	err := fmt.Errorf("%q answered %d %s%s", t.target.base.Host, code, http.StatusText(code), errorBody(resp.Body, t.mask))
	switch {
	case code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooEarly,
		code == http.StatusTooManyRequests, code >= 500:
		return mark(OutcomeAmbiguous, err, retryAfter(resp))
	case code >= 400:
		return Failed(err)
	}
	// 307 and 308 say that it has to be asked elsewhere; a 303, and in practice 301 and 302 too, may
	// follow on something done.
	err = fmt.Errorf("%w: a redirect that is not followed", err)
	if code == http.StatusTemporaryRedirect || code == http.StatusPermanentRedirect || t.spec.Class == agent.ClassRead {
		return Failed(err)
	}
	return Ambiguous(err)
}

// errorBody returns the beginning of an error's body. It may echo a secret header, and half of one would be
// known to no mask, so it is masked before it is cut.
func errorBody(r io.Reader, mask *secret.Mask) string {
	b, _ := io.ReadAll(io.LimitReader(r, maxErrorBody+maxEcho)) // what came is all there is to say
	b = mask.Bytes(b)
	cut := ""
	if len(b) > maxErrorBody {
		b, cut = b[:maxErrorBody], " [cut]"
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(b), "\ufffd"))
	if text == "" {
		return ""
	}
	if strings.ContainsRune(text, 0) {
		return ", with a body that is not text"
	}
	return ": " + text + cut
}

// retryAfter reads seconds or a date (RFC 9110, section 10.2.3); a date is taken against the server's
// own clock where it tells it.
func retryAfter(resp *http.Response) time.Duration {
	text := resp.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	now, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}

// result reads the answer of a 2xx. The transport unpacks gzip while it is read, so the bound holds for
// what a small answer unpacks to.
func (t *httpTool) result(ctx context.Context, resp *http.Response) (Result, error) {
	data, err := io.ReadAll(io.LimitReader(resp.Body, t.config.MaxResult+1))
	if err != nil {
		return Result{}, t.noAnswer(ctx, fmt.Errorf("its answer %d broke off: %w", resp.StatusCode, err), true)
	}
	if int64(len(data)) > t.config.MaxResult {
		text := fmt.Sprintf("%q answered %d with more than %d bytes, which were not kept", t.target.base.Host, resp.StatusCode, t.config.MaxResult)
		if t.spec.Class == agent.ClassRead {
			return Result{}, Failed(errors.New(text + "; ask for less"))
		}
		// It was done: only its answer is too long. An error would have it asked for again.
		return Result{Data: []byte(text)}, nil
	}
	return Result{Data: data, Type: answerType(resp.Header.Get("Content-Type"), data)}, nil
}

// answerType keeps the answer's type; without one that can be read, text is text.
func answerType(header string, data []byte) string {
	if kind, params, err := mime.ParseMediaType(header); err == nil && len(header) <= 200 {
		if text := mime.FormatMediaType(kind, params); text != "" {
			return text
		}
	}
	if utf8.Valid(data) {
		return ""
	}
	return octets
}
