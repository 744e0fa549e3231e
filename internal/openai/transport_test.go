package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/openai"
)

// TestConnectionsFail holds the ways in which no answer comes from a real server.
func TestConnectionsFail(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{true, false} {
		for _, how := range []string{"before", "after_headers", "half"} {
			step := modeltest.Say("hello")
			step.Close = how
			s := modeltest.ForTest(t, modeltest.Config{Steps: []modeltest.Step{step}})
			_, e := ask(newClient(t, s.URL(), stream))
			if e == nil || e.Type != agent.ErrStreamCut || !e.Retry {
				t.Errorf("%s (stream %t): %v, want %s", how, stream, e, agent.ErrStreamCut)
			}
			if got := s.Charges().Answers; got != 0 {
				t.Errorf("%s: charged %d", how, got)
			}
			if s.Count() != 1 {
				t.Errorf("%s: asked %d times by itself", how, s.Count())
			}
		}
	}
}

func TestUnreachableServers(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := "http://" + l.Addr().String()
	l.Close()
	tls := httptest.NewUnstartedServer(http.NotFoundHandler())
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	notTLS := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, url := range []string{closed, tls.URL, strings.Replace(notTLS, "http:", "https:", 1), "http://no-such-host.invalid"} {
		_, e := ask(newClient(t, url+"/v1", true))
		if e == nil || e.Type != agent.ErrUnreachable || !e.Retry || e.Status != 0 {
			t.Errorf("%s: %v, want %s", url, e, agent.ErrUnreachable)
		}
	}
}

// stalls answers with two pieces of a stream, the second when more is closed, and then says no more until
// the client is gone.
func stalls(t *testing.T) (url string, more, gone chan struct{}) {
	more, gone = make(chan struct{}), make(chan struct{})
	url = serve(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		for range 2 {
			fmt.Fprint(w, `data: {"choices":[{"delta":{"content":"hi"}}]}`+"\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-more:
			case <-r.Context().Done():
			}
		}
		<-r.Context().Done()
	})
	return url, more, gone
}

// listens returns a request that closes more once the first piece has come, and then calls then.
func listens(more chan struct{}, then func()) openai.Request {
	r, pieces := hello(), 0
	r.Progress = func(n int) {
		if n > 0 {
			pieces++
		}
		switch {
		case n > 0 && pieces == 1:
			close(more)
		case pieces == 2:
			then()
		}
	}
	return r
}

func TestSilenceInTheMiddleIsATimeout(t *testing.T) {
	t.Parallel()
	url, more, gone := stalls(t)
	c := newClient(t, url, true, func(c *openai.Config) { c.IdleTimeout = 200 * time.Millisecond })
	_, err := c.Ask(context.Background(), listens(more, func() {}))
	var e *openai.Error
	if !errors.As(err, &e) || e.Type != agent.ErrModelTimeout || !e.Retry || !strings.Contains(e.Message, "in the middle") {
		t.Errorf("%v, want %s", err, agent.ErrModelTimeout)
	}
	<-gone
}

func TestAnAttemptIsBounded(t *testing.T) {
	t.Parallel()
	url, _, gone := stalls(t)
	_, e := ask(newClient(t, url, true, func(c *openai.Config) { c.AttemptTimeout = 50 * time.Millisecond }))
	if e == nil || e.Type != agent.ErrModelTimeout || !e.Retry {
		t.Errorf("%v, want %s", e, agent.ErrModelTimeout)
	}
	<-gone

	s := modeltest.ForTest(t, modeltest.Config{Latency: time.Hour})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := newClient(t, s.URL(), false).Ask(ctx, hello())
	if !errors.As(err, &e) || e.Type != agent.ErrModelTimeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v, want %s", err, agent.ErrModelTimeout)
	}
}

// TestCancelStopsAtOnce proves that a cancelled call returns at once and that the server sees it.
func TestCancelStopsAtOnce(t *testing.T) {
	t.Parallel()
	url, more, gone := stalls(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var at time.Time
	_, err := newClient(t, url, true).Ask(ctx, listens(more, func() {
		at = time.Now()
		cancel()
	}))
	took := time.Since(at)
	<-gone
	var e *openai.Error
	if !errors.As(err, &e) || e.Type != agent.ErrCancelled || e.Retry || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want %s", err, agent.ErrCancelled)
	}
	if took > 500*time.Millisecond {
		t.Errorf("it took %s", took)
	}
}

func TestProgressCountsTheBytes(t *testing.T) {
	t.Parallel()
	s := modeltest.ForTest(t, modeltest.Config{})
	for _, stream := range []bool{true, false} {
		var seen []int
		r := hello()
		r.Progress = func(n int) { seen = append(seen, n) }
		if _, err := newClient(t, s.URL(), stream).Ask(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		if len(seen) < 2 || seen[0] != 0 || seen[len(seen)-1] < 100 {
			t.Errorf("progress %v", seen)
		}
	}
}

// TestConnectionsAreReused proves that a stream that was read to [DONE] leaves its connection behind.
func TestConnectionsAreReused(t *testing.T) {
	t.Parallel()
	s := modeltest.ForTest(t, modeltest.Config{})
	var dials atomic.Int32
	c := newClient(t, s.URL(), true, func(c *openai.Config) {
		c.HTTPClient = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			dials.Add(1)
			return (&net.Dialer{}).DialContext(ctx, network, addr)
		}}}
	})
	for range 100 {
		if _, e := ask(c); e != nil {
			t.Fatal(e)
		}
	}
	if n := dials.Load(); n > 5 {
		t.Errorf("%d connections for 100 answers one after the other", n)
	}
}

// TestNothingIsLeftRunning runs alone, because it counts goroutines.
func TestNothingIsLeftRunning(t *testing.T) {
	before := runtime.NumGoroutine()
	func() {
		step := modeltest.Say("hello")
		step.Close = "half"
		s, err := modeltest.Start(modeltest.Config{Steps: []modeltest.Step{step, modeltest.Say("a"), modeltest.Fail(503, "x", "x")}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		c := newClient(t, s.URL(), true, func(c *openai.Config) { c.HTTPClient = &http.Client{Transport: transport} })
		for range 10 {
			_, _ = ask(c)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, _ = c.Ask(ctx, hello())
	}()
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > before {
		buf := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before:\n%s", now, before, buf[:runtime.Stack(buf, true)])
	}
}
