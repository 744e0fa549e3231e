package openai_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/openai"
)

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	good := openai.Config{BaseURL: "https://api.example.com/v1", Key: key, Model: "m"}
	for want, change := range map[string]func(*openai.Config){
		"credentials":  func(c *openai.Config) { c.BaseURL = "https://user:hunter2@api.example.com/v1" },
		"is none":      func(c *openai.Config) { c.BaseURL = "api.example.com/v1" },
		"write it":     func(c *openai.Config) { c.BaseURL = "ftp://user:hunter2@x/\x7f" },
		"query":        func(c *openai.Config) { c.BaseURL += "?key=hunter2" },
		"fragment":     func(c *openai.Config) { c.BaseURL += "#hunter2" },
		"line break":   func(c *openai.Config) { c.Key = "hunter2\n" },
		"no model":     func(c *openai.Config) { c.Model = "" },
		"is negative":  func(c *openai.Config) { c.MaxOutput = -1 },
		"leave it out": func(c *openai.Config) { c.IdleTimeout = -1 },
	} {
		c := good
		change(&c)
		_, err := openai.New(c)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v, want %q and no secret", err, want)
		}
	}
	if _, err := openai.New(good); err != nil {
		t.Error(err)
	}
}

// TestTheKeyIsNeverShown proves it for a printed configuration and for servers that repeat the key.
func TestTheKeyIsNeverShown(t *testing.T) {
	t.Parallel()
	cfg := openai.Config{BaseURL: "https://api.example.com/v1", Key: key, Model: "m"}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", cfg)
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "config", cfg)
	client := newClient(t, cfg.BaseURL, true)
	texts := []string{
		fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, cfg), log.String(),
		fmt.Sprintf("%v %+v %#v %s %+v", client, client, client, client, struct{ c *openai.Client }{client}),
	}

	long := strings.Repeat("x", 480) + key // cut in the middle if it were cut before it is hidden
	for _, status := range []int{200, 400, 401, 503} {
		for _, body := range []string{
			object("wrong key "+key, "x", "x"), object(long, "x", "x"), "<title>" + key, key,
			`{"choices":[],"x":"` + strings.Repeat("x", 80) + key + `"}`, "data: {\"error\":\"" + long + "\"}\n\n",
			object("Incorrect API key provided: sk-test-****cdef.", "x", "x"),
		} {
			for _, stream := range []bool{true, false} {
				_, e := ask(newClient(t, "http://model.invalid/v1", stream, func(c *openai.Config) {
					c.HTTPClient = &http.Client{Transport: answerer(func(*http.Request) *http.Response { return response(status, body) })}
				}))
				texts = append(texts, e.Error())
			}
		}
	}
	for _, text := range texts {
		if strings.Contains(text, key[:12]) || strings.Contains(text, "sk-test") {
			t.Errorf("the key shows in %q", text)
		}
	}
}

// TestRedirectsToOthersAreNotFollowed proves that neither key nor conversation goes to another host.
func TestRedirectsToOthersAreNotFollowed(t *testing.T) {
	t.Parallel()
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("followed: %s %s", r.Method, r.URL) })
	for _, status := range []int{301, 302, 303, 307, 308} {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other+"/v1/chat/completions", status)
		})
		for _, stream := range []bool{true, false} {
			_, e := ask(newClient(t, url, stream))
			if e == nil || e.Type != agent.ErrBadRequest || e.Retry || !strings.Contains(e.Message, "base_url") {
				t.Errorf("%d: %v", status, e)
			}
		}
	}
}

func TestARedirectOnTheSameHostKeepsTheRequest(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/chat/completions" {
			http.Redirect(w, r, "/v2/chat/completions", http.StatusPermanentRedirect)
			return
		}
		if r.Method != http.MethodPost || r.ContentLength == 0 || r.Header.Get("Authorization") != "Bearer "+key {
			t.Errorf("%s with %d bytes and %q", r.Method, r.ContentLength, r.Header.Get("Authorization"))
		}
		fmt.Fprint(w, chunks("stop", `{"content":"hi"}`))
	})
	if a, e := ask(newClient(t, url, true)); e != nil || a.Text != "hi" {
		t.Errorf("%+v, %v", a, e)
	}
}

// TestLimits proves that an answer beyond a bound is none, and that it is not read to its end.
func TestLimits(t *testing.T) {
	t.Parallel()
	small := func(c *openai.Config) { c.MaxAnswer, c.MaxLine, c.MaxArgs, c.MaxCalls = 4000, 2000, 1000, 3 }
	call := `{"id":"a","function":{"name":"f","arguments":"{}"}}`
	pad := strings.Repeat("x", 1100)
	for name, body := range map[string]string{
		"bytes":                     strings.Repeat(`data: {"choices":[{"delta":{"content":"hi"}}]}`+"\n\n", 100),
		"comments":                  strings.Repeat(": keep-alive\n\n", 1000),
		"a line":                    "data: " + pad + pad,
		"a line without end":        "x" + pad + pad,
		"calls":                     chunks("stop", `{"tool_calls":[`+call+","+call+","+call+","+call+`]}`),
		"arguments":                 chunks("stop", `{"tool_calls":[{"index":0,"function":{"arguments":"`+pad+`"}}]}`),
		"arguments in pieces":       chunks("stop", `{"tool_calls":[{"index":0,"function":{"arguments":"`+pad[:600]+`"}}]}`, `{"tool_calls":[{"index":0,"function":{"arguments":"`+pad[:600]+`"}}]}`),
		"arguments of the old form": chunks("stop", `{"function_call":{"arguments":"`+pad+`"}}`),
		"a plain answer":            `{"choices":[{"message":{"content":"` + strings.Repeat("x", 5000) + `"}}]}`,
		"calls in a plain answer":   `{"choices":[{"message":{"tool_calls":[` + call + "," + call + "," + call + "," + call + `]}}]}`,
	} {
		_, e := ask(says(t, true, body, small))
		if e == nil || e.Type != agent.ErrBadAnswer || !e.Retry {
			t.Errorf("%s: %v, want %s", name, e, agent.ErrBadAnswer)
		}
	}
	if _, e := ask(says(t, false, `{"choices":[{"message":{"content":"`+strings.Repeat("x", 5000)+`"}}]}`, small)); e == nil || e.Type != agent.ErrBadAnswer {
		t.Errorf("plain: %v", e)
	}
}
