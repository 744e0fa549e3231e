package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/internal/openai"
)

const key = "sk-test-0123456789abcdef"

func itoa(n int) string { return strconv.Itoa(n) }

func newClient(t *testing.T, url string, stream bool, change ...func(*openai.Config)) *openai.Client {
	t.Helper()
	cfg := openai.Config{BaseURL: url, Key: key, Model: "m", Stream: stream}
	for _, f := range change {
		f(&cfg)
	}
	c, err := openai.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// hello is the shortest request.
func hello() openai.Request {
	return openai.Request{Messages: []openai.Message{{Role: openai.RoleUser, Text: "Hello."}}}
}

func ask(c *openai.Client) (openai.Answer, *openai.Error) {
	a, err := c.Ask(context.Background(), hello())
	var e *openai.Error
	if err != nil && !errors.As(err, &e) {
		panic("not an *openai.Error: " + err.Error())
	}
	return a, e
}

// serve starts a server for one handler.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// says returns a client whose server always answers with this body, streamed when it is an event stream.
func says(t *testing.T, stream bool, body string, change ...func(*openai.Config)) *openai.Client {
	t.Helper()
	transport := answerer(func(*http.Request) *http.Response { return response(200, body) })
	return newClient(t, "http://model.invalid/v1", stream, append(change, func(c *openai.Config) {
		c.HTTPClient = &http.Client{Transport: transport}
	})...)
}

// An answerer is a transport that never leaves the process.
type answerer func(*http.Request) *http.Response

func (f answerer) RoundTrip(r *http.Request) (*http.Response, error) {
	_, _ = io.Copy(io.Discard, r.Body)
	return f(r), nil
}

func response(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// chunks makes an event stream of the choices' insides, ending with this finish reason and [DONE].
func chunks(finish string, deltas ...string) string {
	var b strings.Builder
	for _, d := range deltas {
		b.WriteString(`data: {"choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}` + "\n\n")
	}
	b.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"` + finish + `"}]}` + "\n\ndata: [DONE]\n\n")
	return b.String()
}
