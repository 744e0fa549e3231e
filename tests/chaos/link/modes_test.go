//go:build unix

package link_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/tests/chaos/link"
)

func TestASlowLinkHoldsBackEachPieceInBothDirections(t *testing.T) {
	t.Parallel()
	l, _ := newServer(t, echo)
	c := newClient(t, patience)
	if _, err := ask(c, l.URL(), "x"); err != nil {
		t.Fatal(err)
	}
	const delay = 100 * time.Millisecond
	l.Slow(delay, 0)
	began := time.Now()
	if got, err := ask(c, l.URL(), "x"); err != nil || got != "x" {
		t.Fatal(got, err)
	}
	if took := time.Since(began); took < 2*delay || took > 100*delay {
		t.Errorf("an exchange took %v, want twice %v", took, delay)
	}
	if l.Hits() < 2 {
		t.Errorf("%d hits, want one in each direction", l.Hits())
	}
}

func TestASlowLinkLetsNoMoreThroughThanItsRate(t *testing.T) {
	t.Parallel()
	l, _ := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, strings.Repeat("x", 200<<10))
	})
	l.Slow(0, 400<<10)
	began := time.Now()
	got, err := ask(newClient(t, patience), l.URL(), "x")
	if took := time.Since(began); err != nil || len(got) != 200<<10 || took < 500*time.Millisecond || took > 10*time.Second {
		t.Errorf("%d bytes (%v) in %v, want 200 KiB in half a second", len(got), err, took)
	}
}

func TestWhatASlowLinkHoldsGoesOnWhenItIsFastAgain(t *testing.T) {
	t.Parallel()
	l, _ := newServer(t, echo)
	l.Slow(time.Hour, 1)
	done := make(chan error, 1)
	go func() {
		got, err := ask(newClient(t, patience), l.URL(), "all of it")
		if got != "all of it" {
			err = errors.Join(err, fmt.Errorf("got %q", got))
		}
		done <- err
	}()
	eventually(t, func() bool { return l.Hits() > 0 })
	l.Pass()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestAHalfOpenLinkIsSilentToBoth holds that a client's own time-out is all that it hears, over a connection that was
// good before and over a new one, and that the target hears of neither.
func TestAHalfOpenLinkIsSilentToBoth(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	l, connections := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		asked <- string(b)
	})
	good := newClient(t, patience)
	if _, err := ask(good, l.URL(), "before"); err != nil {
		t.Fatal(err)
	}
	l.HalfOpen()
	for name, c := range map[string]*http.Client{"kept alive": good, "new": newClient(t, 0)} {
		c.Timeout = impatience
		if got, err := ask(c, l.URL(), name); !os.IsTimeout(err) {
			t.Errorf("%s: %q, %v; want a time-out", name, got, err)
		}
	}
	if got := hear(t, asked); got != "before" || len(asked) > 0 || connections.Load() != 1 {
		t.Errorf("the target heard %q and %d more over %d connections", got, len(asked), connections.Load())
	}
	l.Pass()
	if _, err := ask(newClient(t, patience), l.URL(), "after"); err != nil || hear(t, asked) != "after" {
		t.Errorf("afterwards: %v", err)
	}
}

func TestAHalfOpenLinkKeepsAStreamWaiting(t *testing.T) {
	t.Parallel()
	more := make(chan string)
	server := listen(t, func(c *net.TCPConn) {
		for s := range more {
			_, _ = io.WriteString(c, s)
		}
	})
	l := newLink(t, server)
	c := dial(t, l.Addr())
	more <- "a"
	if s, err := next(c); err != nil || s != "a" {
		t.Fatal(s, err)
	}
	l.HalfOpen()
	more <- "b"
	close(more) // and the target closes its end
	if s, err := soon(c); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%q, %v; want silence", s, err)
	}
}

// TestADeafLinkLosesResponses is a request that took effect, and whoever made it does not hear so, however the target
// ends its connection.
func TestADeafLinkLosesResponses(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	l, _ := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		asked <- string(b)
		if string(b) == "drop" {
			panic(http.ErrAbortHandler)
		}
	})
	kept := newClient(t, patience)
	if _, err := ask(kept, l.URL(), "before"); err != nil || hear(t, asked) != "before" {
		t.Fatal(err)
	}
	l.Deaf()
	kept.Timeout = impatience
	for body, c := range map[string]*http.Client{"kept": kept, "new": newClient(t, impatience), "drop": newClient(t, impatience)} {
		if got, err := ask(c, l.URL(), body); !os.IsTimeout(err) {
			t.Errorf("%s: %q, %v; want a time-out", body, got, err)
		}
		if got := hear(t, asked); got != body {
			t.Errorf("the target heard %q, want %q", got, body)
		}
	}
	l.Pass()
	if _, err := ask(newClient(t, patience), l.URL(), "after"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestADeafLinkDoesNotSayThatNobodyListens: to find the target gone when there is more to say would be an answer.
func TestADeafLinkDoesNotSayThatNobodyListens(t *testing.T) {
	t.Parallel()
	l := newLink(t, listen(t, func(c *net.TCPConn) {
		_, _ = next(c)
		_ = c.SetLinger(0) // which makes the close a reset
	}))
	c := dial(t, l.Addr())
	l.Deaf()
	say(t, c, "a")
	eventually(t, func() bool { return l.Hits() == 1 })
	for range 3 {
		say(t, c, "b")
		if s, err := soon(c); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q, %v; want silence", s, err)
		}
	}
}

// TestWhatIsTornIsResetAndWhatIsNotGoesOn: a stream with a hole in it would be one that nobody sent.
func TestWhatIsTornIsResetAndWhatIsNotGoesOn(t *testing.T) {
	t.Parallel()
	server := listen(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) })
	for name, bad := range map[string]func(*link.Link){"half-open": (*link.Link).HalfOpen, "deaf": (*link.Link).Deaf} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLink(t, server)
			torn, whole := dial(t, l.Addr()), dial(t, l.Addr())
			for _, c := range []net.Conn{torn, whole} {
				say(t, c, "a")
				if s, err := next(c); err != nil || s != "a" {
					t.Fatal(s, err)
				}
			}
			bad(l)
			say(t, torn, "b")
			eventually(t, func() bool { return l.Hits() == 1 })
			bad(l) // the same again changes nothing
			if s, err := soon(torn); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%q, %v; want silence", s, err)
			}
			l.Pass()
			if s, err := next(torn); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the torn one: %q, %v; want a reset", s, err)
			}
			say(t, whole, "c")
			if s, err := next(whole); err != nil || s != "c" {
				t.Errorf("the whole one: %q, %v", s, err)
			}
		})
	}
}

func TestACutLinkResetsAndRefusesAndKeepsItsPort(t *testing.T) {
	t.Parallel()
	l := newLink(t, listen(t, func(c *net.TCPConn) { _, _ = io.Copy(c, c) }))
	for range 5 {
		c := dial(t, l.Addr())
		say(t, c, "a")
		if s, err := next(c); err != nil || s != "a" {
			t.Fatal(s, err)
		}
		l.Cut()
		if s, err := next(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q, %v; want a reset", s, err)
		}
		for range 3 {
			if c, err := net.Dial("tcp", l.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%v, %v; want to be refused", c, err)
			}
		}
		if !taken(t, l.Addr()) {
			t.Error("the port could be had by somebody else")
		}
		l.Pass()
	}
	if l.Hits() != 5 {
		t.Errorf("%d hits, want the five resets", l.Hits())
	}
}

func TestATargetThatIsAwayIsAResetAndIsFoundWhenItIsBack(t *testing.T) {
	t.Parallel()
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := away.Addr().String()
	l := newLink(t, addr)
	away.Close()
	if c, err := net.Dial("tcp", l.Addr()); err == nil {
		defer c.Close()
		if s, err := soon(c); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("%q, %v; want a reset", s, err)
		}
	} else if !errors.Is(err, syscall.ECONNRESET) { // so soon that it is heard of instead of the connection
		t.Errorf("%v; want a reset", err)
	}
	back, err := net.Listen("tcp", addr)
	if err != nil {
		t.Skipf("somebody else has the port: %v", err)
	}
	defer back.Close()
	c := dial(t, l.Addr())
	say(t, c, "a")
	there, err := back.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	if s, err := next(there); err != nil || s != "a" {
		t.Error(s, err)
	}
	_ = there.(*net.TCPConn).SetLinger(0)
	there.Close()
	if s, err := next(c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("it reset: %q, %v; want to hear of it", s, err)
	}
}

// TestALinkCanBeToldAnythingWhileItIsUsed is for the race detector, and for a Close that waits for something.
func TestALinkCanBeToldAnythingWhileItIsUsed(t *testing.T) {
	t.Parallel()
	l, _ := newServer(t, echo)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			c := newClient(t, 20*time.Millisecond)
			for range 20 {
				_, _ = ask(c, l.URL(), strings.Repeat("x", 100<<10))
			}
		})
	}
	for i := range 100 {
		[]func(){l.Pass, l.HalfOpen, l.Deaf, l.Cut, func() { l.Slow(time.Millisecond, 1<<20) }}[i%5]()
		time.Sleep(3 * time.Millisecond)
	}
	l.Pass()
	all.Wait()
	if got, err := ask(newClient(t, patience), l.URL(), "x"); err != nil || got != "x" {
		t.Errorf("afterwards: %q, %v", got, err)
	}
	l.HalfOpen()
	c := dial(t, l.Addr())
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := next(c); err == nil {
		t.Error("a connection outlives its link")
	}
	if _, err := net.Dial("tcp", l.Addr()); err == nil {
		t.Error("a link that is closed takes connections")
	}
	l.Pass() // is nothing any more
}

func TestALinkIsToAnAddress(t *testing.T) {
	t.Parallel()
	if _, err := link.New("127.0.0.1"); err == nil || !strings.Contains(err.Error(), "host:port") {
		t.Error(err)
	}
}

func hear(t *testing.T, said <-chan string) string {
	t.Helper()
	select {
	case s := <-said:
		return s
	case <-time.After(patience):
		t.Fatal("nothing was heard")
		return ""
	}
}

func say(t *testing.T, c net.Conn, s string) {
	t.Helper()
	if _, err := io.WriteString(c, s); err != nil {
		t.Fatal(err)
	}
}

// next reads what comes next.
func next(c net.Conn) (string, error) {
	b := make([]byte, 100)
	n, err := c.Read(b)
	return string(b[:n]), err
}

// soon reads what comes next, if it comes soon.
func soon(c net.Conn) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(impatience)); err != nil {
		return "", err
	}
	defer func() { _ = c.SetReadDeadline(time.Now().Add(patience)) }()
	return next(c)
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for began := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("it does not come about")
		}
	}
}

// taken says whether an address cannot be bound. Unlike Go's listeners it does not ask to share one that nobody listens
// on, as programs that take any free port do not.
func taken(t *testing.T, addr string) bool {
	t.Helper()
	a, err := net.ResolveTCPAddr("tcp4", addr)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	return errors.Is(syscall.Bind(fd, &syscall.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}), syscall.EADDRINUSE)
}
