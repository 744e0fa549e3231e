package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// classify returns the error that a response with this status and body is. Status 0 is an error object that
// came under 200 or inside a stream: then the object says what it would have been.
func classify(status int, h http.Header, body []byte) *Error {
	c := read(body)
	if status == 0 {
		status = c.impliedStatus()
	}
	e := &Error{Status: status, RetryAfter: retryAfter(h, time.Now()), raw: body}
	e.Type, e.Retry = c.class(status)
	e.Message = c.message
	if e.Message == "" {
		e.Message = cmp.Or(page(body), strings.ToLower(http.StatusText(status)), "the server did not say why")
	}
	if a := advice(e.Type); a != "" {
		e.Message = clean(e.Message, maxMessage-100) + "; " + a
	}
	return e
}

// A complaint is what an error body says, in whatever shape.
type complaint struct {
	message string
	words   string // code, type and the like, in lower case
	status  int    // a number given as code or status
}

// class follows the codes and words first, because providers agree on them more than on statuses.
func (c complaint) class(status int) (class string, retry bool) {
	text := strings.ToLower(c.message)
	switch {
	case status == http.StatusPaymentRequired,
		anyOf(c.words, "insufficient_quota", "billing", "insufficient_balance", "insufficient_credit"),
		anyOf(text, "insufficient balance", "insufficient credits", "credit balance is too low"):
		return agent.ErrQuota, false
	case anyOf(c.words, "content_filter", "content_policy", "responsibleai", "data_inspection", "moderation"),
		anyOf(text, "content management policy", "content filter"):
		return agent.ErrContentFilter, false
	case status == http.StatusTooManyRequests:
		return agent.ErrRateLimit, true
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return agent.ErrAuthentication, false
	case status == http.StatusRequestEntityTooLarge,
		anyOf(c.words, "context_length", "exceed_context", "context_window"),
		anyOf(text, "context length", "context window", "context size", "prompt is too long", "input is too long", "too many tokens"):
		return agent.ErrContextLength, false
	}
	return byStatus(status, c.words+" "+text)
}

func byStatus(status int, text string) (class string, retry bool) {
	switch {
	case status == http.StatusRequestTimeout:
		return agent.ErrModelTimeout, true
	case status == http.StatusConflict, status == http.StatusTooEarly,
		status == 498, // "capacity exceeded" of a provider
		status >= 500:
		return agent.ErrOverloaded, true
	case anyOf(text, "invalid_api_key", "api key not valid", "invalid api key"):
		return agent.ErrAuthentication, false
	}
	return agent.ErrBadRequest, false
}

// impliedStatus is the status that an error object would have come with. One that says nothing is taken for
// a passing trouble of a gateway.
func (c complaint) impliedStatus() int {
	if c.status >= 400 && c.status < 600 {
		return c.status
	}
	switch {
	case anyOf(c.words, "rate_limit", "too_many_requests", "resource_exhausted"):
		return http.StatusTooManyRequests
	case anyOf(c.words, "authentication", "permission", "api_key", "unauthorized"):
		return http.StatusUnauthorized
	case anyOf(c.words, "invalid_request", "badrequest", "bad_request", "not_found", "context_length"):
		return http.StatusBadRequest
	case anyOf(c.words, "timeout"):
		return http.StatusRequestTimeout
	}
	return http.StatusBadGateway
}

func advice(class string) string {
	switch class {
	case agent.ErrAuthentication:
		return "check the model's key"
	case agent.ErrQuota:
		return "check the plan and the billing at the provider"
	case agent.ErrContextLength:
		return "the conversation is too long for this model"
	}
	return ""
}

func anyOf(text string, parts ...string) bool {
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// read finds message and codes in the shapes that servers use: {"error": {...}}, {"error": "..."}, the
// members at the top, {"detail": ...}, an array of these.
func read(body []byte) complaint {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return complaint{}
	}
	for range 4 { // error in error in array: deep enough
		switch t := v.(type) {
		case []any:
			if len(t) == 0 {
				return complaint{}
			}
			v = t[0]
			continue
		case map[string]any:
			if inner, ok := t["error"]; ok && inner != nil {
				v = inner
				continue
			}
			return fromObject(t)
		case string:
			return complaint{message: t, words: strings.ToLower(t)}
		}
		break
	}
	return complaint{}
}

func fromObject(o map[string]any) complaint {
	var c complaint
	for _, name := range []string{"message", "detail", "msg", "error_description", "errors"} {
		if c.message == "" {
			c.message = plain(o[name])
		}
	}
	for _, name := range []string{"code", "status", "type", "innererror"} {
		s := plain(o[name])
		if n, err := strconv.Atoi(s); err == nil && c.status == 0 {
			c.status = n
		}
		c.words += " " + strings.ToLower(s)
	}
	return c
}

// plain returns a string as it is and anything else as JSON.
func plain(v any) string {
	switch t := v.(type) {
	case nil:
		return ""
	case string:
		return t
	}
	b, _ := json.Marshal(v)
	return string(b)
}

// page returns the text of a body that is no JSON, such as a proxy's page: its title or its beginning.
func page(body []byte) string {
	lower := bytes.ToLower(body)
	if from := bytes.Index(lower, []byte("<title>")); from >= 0 && len(lower) == len(body) {
		from += len("<title>")
		if n := bytes.IndexByte(body[from:], '<'); n >= 0 {
			return clean(string(body[from:from+n]), 120)
		}
	}
	return clean(string(body[:min(len(body), 1<<10)]), 120)
}
