package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast-run/holdfast/internal/expr"
)

// An httpAnswer is what a destination said to an ask.
type httpAnswer struct {
	status int
	data   []byte
	kind   string
	cached bool // by somebody on the way, so that it is from before
}

// Reconcile asks what became of the call. An answer that is about the asking and not about the call proves nothing,
// whatever the conditions say of it.
func (a *httpAsk) Reconcile(ctx context.Context, c Call) (Finding, Result, error) {
	ans, err := a.ask(ctx, c)
	if err != nil {
		return Unknown, Result{}, err
	}
	if !ans.speaks() {
		return Unknown, Result{}, fmt.Errorf("%s, which says nothing about the call", a.said(ans))
	}
	in, err := callInput(c)
	if err != nil {
		return Unknown, Result{}, err
	}
	in["status"], in["text"], in["body"] = expr.Of(ans.status), textOf(ans.data), jsonOf(ans.data)
	finding, err := a.judge.judge(in)
	if err != nil {
		return Unknown, Result{}, fmt.Errorf("%s: %w", a.said(ans), err)
	}
	if finding != Found {
		return finding, Result{}, nil
	}
	return Found, Result{Data: ans.data, Type: ans.kind}, nil
}

// speaks says whether an answer is one about the call as it is now: done, or a refusal that is not about who asks, how
// often, or when, and from the destination itself.
func (ans httpAnswer) speaks() bool {
	if ans.cached {
		return false
	}
	switch ans.status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMethodNotAllowed, http.StatusProxyAuthRequired,
		http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return ans.status >= 200 && ans.status < 300 || ans.status >= 400 && ans.status < 500
}

// observe says what state the target is in: the status and the body of an answer of success, or that there is none.
func (a *httpAsk) observe(ctx context.Context, c Call) (Result, error) {
	ans, err := a.ask(ctx, c)
	if err != nil {
		return Result{}, err
	}
	there := ans.status >= 200 && ans.status < 300
	if !there && ans.status != http.StatusNotFound && ans.status != http.StatusGone {
		return Result{}, fmt.Errorf("%s, which is no state", a.said(ans))
	}
	state := fmt.Appendf(nil, "%d %s\n", ans.status, http.StatusText(ans.status))
	if there {
		state = append(state, stable(ans.data)...)
	}
	return Result{Data: a.mask.Bytes(state)}, nil
}

// stable gives equal JSON values equal bytes, whatever order a server writes their members in.
func stable(data []byte) []byte {
	if !json.Valid(data) {
		return data
	}
	if sorted, err := sortedJSON(data); err == nil {
		return sorted
	}
	return data
}

// ask sends the GET and reads the answer, whatever its status.
func (a *httpAsk) ask(ctx context.Context, c Call) (ans httpAnswer, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.spec.Timeout)
	defer cancel()
	req, err := a.request(ctx, c)
	if err != nil {
		return ans, err
	}
	resp, err := a.client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err // without the URL, which repeats the arguments
		}
		return ans, fmt.Errorf("%q did not answer: %w", a.target.base.Host, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, a.limit+1))
	switch {
	case err != nil:
		return ans, fmt.Errorf("%q answered %d, and then: %w", a.target.base.Host, resp.StatusCode, err)
	case int64(len(data)) > a.limit:
		return ans, fmt.Errorf("%q answered %d with more than %d bytes; ask for less", a.target.base.Host, resp.StatusCode, a.limit)
	}
	age := strings.TrimLeft(resp.Header.Get("Age"), "0")
	return httpAnswer{resp.StatusCode, data, answerType(resp.Header.Get("Content-Type"), data), age != ""}, nil
}

func (a *httpAsk) request(ctx context.Context, c Call) (*http.Request, error) {
	var args map[string]json.RawMessage
	if err := json.Unmarshal([]byte(c.Args), &args); err != nil {
		return nil, fmt.Errorf("the arguments are not a JSON object: %w", err)
	}
	key, err := plainJSON(c.Key)
	if err != nil {
		return nil, err
	}
	if args == nil {
		args = map[string]json.RawMessage{}
	}
	args[keyArg] = key
	for _, name := range a.target.templateNames() {
		if v, ok, err := scalar(name, args[name]); err != nil || !ok || v == "" {
			return nil, errors.Join(fmt.Errorf("the call has no %q, which the question needs", name), err)
		}
	}
	u, err := a.target.url(args)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", "holdfast")
	req.Header.Set("Cache-Control", "no-cache") // what was so proves nothing
	for name, values := range a.headers {
		req.Header[name] = values
	}
	return req, nil
}

// said quotes an answer for a person.
func (a *httpAsk) said(ans httpAnswer) string {
	return fmt.Sprintf("%q answered %d %s%s", a.target.base.Host, ans.status, http.StatusText(ans.status),
		errorBody(strings.NewReader(string(ans.data)), a.mask))
}
