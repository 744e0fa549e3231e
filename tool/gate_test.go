package tool

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
)

// closing returns a context whose gate closes once the call has begun: it lets so many looks pass.
func closing(ctx context.Context, looks int32) context.Context {
	var n atomic.Int32
	return WithGate(ctx, func() error {
		if n.Add(1) > looks {
			return errors.New("too late to send")
		}
		return nil
	})
}

// A connection that took so long to get that the time to send is over carries nothing.
func TestNothingLeavesThroughAGateThatHasClosed(t *testing.T) {
	t.Parallel()
	b := serve(t, ok)
	web := newRawWeb(t)
	web.on(func(w http.ResponseWriter, _ *http.Request, req rawRequest) { mcpOK(w, req) })
	over := startMCP(t, httpConfig(web.URL))
	piped := startMCP(t, helper(t, "raw"))
	for name, tool := range map[string]Tool{
		"POST":          newHTTP(t, HTTPConfig{Method: http.MethodPost, URL: b.URL, Class: agent.ClassOnce}),
		"DELETE":        newHTTP(t, HTTPConfig{Method: http.MethodDelete, URL: b.URL, Class: agent.ClassReconcilable, Reconcile: &HTTPAsk{URL: b.URL, Found: "status == 200"}}),
		"MCP over HTTP": toolOf(t, over, "t"),
		"MCP in pipes":  toolOf(t, piped, "echo"),
	} {
		if !Gated(tool) {
			t.Errorf("%s: not gated", name)
		}
		c := Call{Key: key, Args: `{"order":"7"}`, Scope: agent.NewScope("s", "r")}
		_, err := tool.Do(closing(t.Context(), 0), c)
		wantMeaning(t, err, OutcomeNotSent, "too late to send")
		if _, err := tool.Do(closing(t.Context(), 1), c); err != nil {
			t.Errorf("%s, while it is open: %v", name, err)
		}
	}
	if len(b.asked()) != 2 || web.calls.Load() != 1 {
		t.Errorf("%d requests and %d calls arrived, want those that were let through", len(b.asked()), web.calls.Load())
	}
}
