//go:build unix

package link_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/holdfast-run/holdfast/tests/chaos/link"
)

// patience bounds what should come and does not; impatience is how long what must not come is waited for.
const (
	patience   = time.Minute
	impatience = time.Second
)

func newLink(t *testing.T, target string) *link.Link {
	t.Helper()
	l, err := link.New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// newServer starts an HTTP server, which hears of connections too, and a link to it.
func newServer(t *testing.T, h http.HandlerFunc) (l *link.Link, connections *atomic.Int32) {
	t.Helper()
	connections = new(atomic.Int32)
	s := httptest.NewUnstartedServer(h)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.Start()
	// The link goes first: by it a client's connections end, for which the server waits.
	t.Cleanup(s.Close)
	return newLink(t, s.Listener.Addr().String()), connections
}

// newClient returns a client with connections of its own.
func newClient(t *testing.T, timeout time.Duration) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: timeout}
}

// ask makes a request and returns what came of it.
func ask(c *http.Client, url, body string) (string, error) {
	res, err := c.Post(url, "text/plain", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

func echo(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) }

func TestRequestsOverOneConnectionPassUnharmed(t *testing.T) {
	t.Parallel()
	l, connections := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	})
	c := newClient(t, patience)
	for i := range 50 {
		body := strings.Repeat(fmt.Sprint(i), 1+i*5000)
		if got, err := ask(c, l.URL(), body); err != nil || got != body {
			t.Fatalf("request %d: %d bytes of %d (%v)", i, len(got), len(body), err)
		}
	}
	if n := connections.Load(); n != 1 || l.Hits() != 0 {
		t.Errorf("%d connections, want one that is kept alive; %d hits", n, l.Hits())
	}
}

// TestAStreamIsHeardAsItIsSpoken proves that nothing waits for more: the server goes on only when a client has heard.
func TestAStreamIsHeardAsItIsSpoken(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	l, _ := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range 100 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-heard:
			case <-r.Context().Done():
				return
			}
		}
	})
	res, err := newClient(t, patience).Get(l.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	for i := range 100 {
		line, err := lines.ReadString('\n')
		if want := fmt.Sprintf("data: %d\n", i); err != nil || line != want {
			t.Fatalf("%q (%v), want %q", line, err, want)
		}
		_, _ = lines.ReadString('\n')
		heard <- struct{}{}
	}
	if rest, err := io.ReadAll(lines); err != nil || len(rest) != 0 {
		t.Errorf("the end is %q, %v", rest, err)
	}
}

// TestAHalfClosedConnectionStillAnswers is a client that says all it has to say, closes, and then listens.
func TestAHalfClosedConnectionStillAnswers(t *testing.T) {
	t.Parallel()
	server := listen(t, func(c *net.TCPConn) {
		b, _ := io.ReadAll(c)
		_, _ = c.Write(b)
	})
	c := dial(t, newLink(t, server).Addr())
	said := bytes.Repeat([]byte("x"), 3<<20)
	if _, err := c.Write(said); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); err != nil || !bytes.Equal(got, said) {
		t.Errorf("%d bytes of %d (%v)", len(got), len(said), err)
	}
}

func TestGRPCPassesCallsAndStreams(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	states, server := health.NewServer(), grpc.NewServer()
	healthpb.RegisterHealthServer(server, states)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	l := newLink(t, listener.Addr().String())
	conn, err := grpc.NewClient(l.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client := healthpb.NewHealthClient(conn)
	watch, err := client.Watch(t.Context(), &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []healthpb.HealthCheckResponse_ServingStatus{healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING, healthpb.HealthCheckResponse_SERVING} {
		states.SetServingStatus("", want)
		for {
			got, err := watch.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if got.GetStatus() == want {
				break
			}
		}
		if got, err := client.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil || got.GetStatus() != want {
			t.Fatalf("%v (%v), want %v", got, err, want)
		}
	}
}

// listen serves raw connections, one after the other's begin.
func listen(t *testing.T, serve func(*net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c.(*net.TCPConn))
			}()
		}
	}()
	return listener.Addr().String()
}

// dial connects, and lets no wait be longer than the test's patience.
func dial(t *testing.T, addr string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return c.(*net.TCPConn)
}
