package openai_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/openai"
)

func object(message, kind, code string) string {
	return `{"error":{"message":"` + message + `","type":"` + kind + `","code":"` + code + `"}}`
}

// TestStatusBecomesClass holds the table of HTTP statuses and error bodies, streamed and plain.
func TestStatusBecomesClass(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		class  string
		retry  bool
	}{
		{400, object("no", "invalid_request_error", ""), agent.ErrBadRequest, false},
		{400, object("This model's maximum context length is 8192 tokens", "invalid_request_error", "context_length_exceeded"), agent.ErrContextLength, false},
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}`, agent.ErrContextLength, false},
		{400, `{"object":"error","message":"This model's maximum context length is 10","type":"BadRequestError","code":400}`, agent.ErrContextLength, false},
		{400, object("filtered", "", "content_filter"), agent.ErrContentFilter, false},
		{400, `{"error":{"message":"x","code":null,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, agent.ErrContentFilter, false},
		{400, `[{"error":{"code":400,"message":"API key not valid. Please pass one.","status":"INVALID_ARGUMENT"}}]`, agent.ErrAuthentication, false},
		{400, object("Your credit balance is too low", "invalid_request_error", ""), agent.ErrQuota, false},
		{401, object("bad key", "", "invalid_api_key"), agent.ErrAuthentication, false},
		{402, `{"error":"pay"}`, agent.ErrQuota, false},
		{403, `{"detail":"no"}`, agent.ErrAuthentication, false},
		{403, object("flagged", "", "moderation"), agent.ErrContentFilter, false},
		{404, object("no such model", "", "model_not_found"), agent.ErrBadRequest, false},
		{405, ``, agent.ErrBadRequest, false},
		{408, ``, agent.ErrModelTimeout, true},
		{409, ``, agent.ErrOverloaded, true},
		{413, `<html><title>413 Request Entity Too Large</title></html>`, agent.ErrContextLength, false},
		{418, ``, agent.ErrBadRequest, false},
		{422, `{"detail":[{"loc":["body","x"],"msg":"Extra inputs are not permitted"}]}`, agent.ErrBadRequest, false},
		{425, ``, agent.ErrOverloaded, true},
		{429, object("slow down", "rate_limit_error", "rate_limit_exceeded"), agent.ErrRateLimit, true},
		{429, object("no money", "insufficient_quota", "insufficient_quota"), agent.ErrQuota, false},
		{429, `not json`, agent.ErrRateLimit, true},
		{500, object("oops", "server_error", ""), agent.ErrOverloaded, true},
		{500, object("exceeds the context window", "", ""), agent.ErrContextLength, false},
		{502, `<html><head><title>502 Bad Gateway</title>`, agent.ErrOverloaded, true},
		{503, ``, agent.ErrOverloaded, true},
		{504, ``, agent.ErrOverloaded, true},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, agent.ErrOverloaded, true},
		{598, ``, agent.ErrOverloaded, true},
		{302, ``, agent.ErrBadRequest, false},
		{200, `{"error":{"message":"upstream overloaded","type":"server_error","code":502}}`, agent.ErrOverloaded, true},
		{200, `{"error":"model is loading"}`, agent.ErrOverloaded, true},
		{200, object("slow down", "rate_limit_error", ""), agent.ErrRateLimit, true},
		{200, `{"error":{"message":"x","code":429}}`, agent.ErrRateLimit, true},
		{200, `{"error":{"message":"x","code":"429"}}`, agent.ErrRateLimit, true},
		{200, object("x", "invalid_request_error", ""), agent.ErrBadRequest, false},
		{200, object("x", "", "insufficient_quota"), agent.ErrQuota, false},
		{200, object("x", "authentication_error", ""), agent.ErrAuthentication, false},
		{200, "event: error\ndata: {\"message\":\"x\"}\n\n", agent.ErrOverloaded, true},
		{200, "data: " + object("slow down", "", "rate_limit_exceeded") + "\n\n", agent.ErrRateLimit, true},
		{200, "data: {\"id\":\"c\",\"choices\":[],\"error\":{\"message\":\"x\",\"code\":503}}\n\n", agent.ErrOverloaded, true},
		{200, ": hello\n\n{\"error\":{\"message\":\"x\",\"code\":401}}\n", agent.ErrAuthentication, false},
		{200, `<!doctype html><title>Sign in</title>`, agent.ErrBadAnswer, true},
		{200, `{"choices":[]}`, agent.ErrBadAnswer, true},
		{200, `{"object":"list"}`, agent.ErrBadAnswer, true},
		{200, `[1,2]`, agent.ErrBadAnswer, true},
		{200, `{"choices":[{"message":{"content":"cut o`, agent.ErrStreamCut, true},
		{200, `{"choices":[{"message":{"tool_calls":5}}]}`, agent.ErrBadAnswer, true},
		{200, `{"choices":[{"message":{"content":null},"finish_reason":"tool_calls"}]}`, agent.ErrBadAnswer, true},
		{200, `{"choices":[{"message":{"content":"x"},"finish_reason":"error"}]}`, agent.ErrOverloaded, true},
	} {
		for _, stream := range []bool{true, false} {
			if !stream && strings.Contains(c.body, "data:") || !stream && strings.HasPrefix(c.body, ":") {
				continue
			}
			client := newClient(t, "http://model.invalid/v1", stream, func(cfg *openai.Config) {
				cfg.HTTPClient = &http.Client{Transport: answerer(func(*http.Request) *http.Response { return response(c.status, c.body) })}
			})
			_, e := ask(client)
			if e == nil {
				t.Errorf("%d %s: an answer, want %s", c.status, c.body, c.class)
				continue
			}
			if e.Type != c.class || e.Retry != c.retry || e.Message == "" || len(e.Message) > 700 || strings.Contains(e.Message, "\n") {
				t.Errorf("%d %s (stream %t): %s retry=%t %q, want %s retry=%t", c.status, c.body, stream, e.Type, e.Retry, e.Message, c.class, c.retry)
			}
			if c.status >= 300 && e.Status != c.status {
				t.Errorf("%d %s: status %d", c.status, c.body, e.Status)
			}
		}
	}
}

func TestRetryAfterIsReadInAllItsForms(t *testing.T) {
	t.Parallel()
	sent := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	date := sent.Add(90 * time.Second).Format(http.TimeFormat)
	for _, c := range []struct {
		headers map[string]string
		want    time.Duration
	}{
		{nil, 0},
		{map[string]string{"Retry-After": "2"}, 2 * time.Second},
		{map[string]string{"Retry-After": " 1.5 "}, 1500 * time.Millisecond},
		{map[string]string{"Retry-After": "20", "retry-after-ms": "250"}, 250 * time.Millisecond},
		{map[string]string{"Retry-After": "20", "retry-after-ms": "soon"}, 20 * time.Second},
		{map[string]string{"Retry-After": "-3"}, 0},
		{map[string]string{"Retry-After": "1e300"}, openai.MaxRetryAfter},
		{map[string]string{"Retry-After": "99999999999999999999"}, openai.MaxRetryAfter},
		{map[string]string{"Retry-After": "Inf"}, openai.MaxRetryAfter},
		{map[string]string{"Retry-After": "NaN"}, 0},
		{map[string]string{"Retry-After": "soon"}, 0},
		{map[string]string{"Retry-After": date, "Date": sent.Format(http.TimeFormat)}, 90 * time.Second},
		{map[string]string{"Retry-After": sent.Format(http.TimeFormat), "Date": date}, 0},
		{map[string]string{"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, openai.MaxRetryAfter},
	} {
		for _, stream := range []bool{true, false} {
			client := newClient(t, "http://model.invalid/v1", stream, func(cfg *openai.Config) {
				cfg.HTTPClient = &http.Client{Transport: answerer(func(*http.Request) *http.Response {
					r := response(429, `{}`)
					for name, value := range c.headers {
						r.Header.Set(name, value)
					}
					return r
				})}
			})
			if _, e := ask(client); e == nil || e.RetryAfter != c.want {
				t.Errorf("%v: %+v, want %s", c.headers, e, c.want)
			}
		}
	}
}

func TestRetryAfterOfAnErrorUnder200(t *testing.T) {
	t.Parallel()
	client := newClient(t, "http://model.invalid/v1", true, func(cfg *openai.Config) {
		cfg.HTTPClient = &http.Client{Transport: answerer(func(*http.Request) *http.Response {
			r := response(200, `{"error":{"code":429,"message":"x"}}`)
			r.Header.Set("Retry-After", "7")
			return r
		})}
	})
	if _, e := ask(client); e == nil || e.RetryAfter != 7*time.Second {
		t.Errorf("%+v, want 7s", e)
	}
}
