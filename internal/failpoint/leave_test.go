//go:build failpoint

package failpoint

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// said returns the lines that begin with a word.
func said(out []byte, word string) (lines []string) {
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, word+" ") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// tell writes a line to standard error, where no beats are.
func tell(a ...any) { fmt.Fprintln(os.Stderr, a...) }

// client returns one whose connections know when a request has left.
func client() *http.Client {
	return &http.Client{Transport: &http.Transport{DialContext: Dial((&net.Dialer{}).DialContext)}}
}

// post sends bytes and returns what is wrong, "" if nothing is.
func post(ctx context.Context, c *http.Client, url string, size int) string {
	return send(ctx, c, url, strings.NewReader(strings.Repeat("x", size)), size)
}

func send(ctx context.Context, c *http.Client, url string, body io.Reader, size int) string {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return err.Error()
	}
	req.ContentLength = int64(size)
	resp, err := c.Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || string(b) != strconv.Itoa(size) {
		return fmt.Sprintf("answer %q, %v", b, err)
	}
	return ""
}

// counter answers with the size of what it got, and counts whole requests.
func counter(got *atomic.Int32) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err == nil {
			got.Add(1)
		}
		fmt.Fprint(w, len(b))
	}))
}

// TestWhoDiesAfterARequestHasLeftHasSentIt: also a small one, which lies in net/http's buffer for longer than httptrace
// says. The destination never answers.
func TestWhoDiesAfterARequestHasLeftHasSentIt(t *testing.T) {
	t.Parallel()
	var got atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err == nil {
			got.Add(1)
		}
		<-r.Context().Done()
	}))
	defer web.Close()
	for n, size := range []int{100, 100 << 10} {
		cmd := again(t, "tool.after_send:1=kill", "", func() {
			c := client()
			c.Timeout = 5 * time.Second
			post(Sent(context.Background(), ToolAfterSend), c, os.Getenv("TEST_URL"), atoi(os.Getenv("TEST_SIZE")))
		})
		cmd.Env = append(cmd.Env, "TEST_URL="+web.URL, fmt.Sprintf("TEST_SIZE=%d", size))
		if err := cmd.Run(); err == nil {
			t.Errorf("%d bytes: it lives", size)
		}
		eventually(t, "the request arrives", func() bool { return got.Load() == int32(n+1) })
	}
}

// TestARequestOfAnySizeHasLeftBeforeItsAnswerIsHeard: among them is one that just fills net/http's buffer, and one
// that does not say how long it is.
func TestARequestOfAnySizeHasLeftBeforeItsAnswerIsHeard(t *testing.T) {
	t.Parallel()
	var got atomic.Int32
	web := counter(&got)
	defer web.Close()
	trace := filepath.Join(t.TempDir(), "trace")
	sizes := []int{0, 100, 100 << 10}
	for fill := 4096 - 256; fill < 4096; fill++ {
		sizes = append(sizes, fill)
	}
	cmd := again(t, "worker.ready=error", "", func() {
		c := client()
		for n, size := range sizes {
			why := post(Sent(context.Background(), ToolAfterSend), c, os.Getenv("TEST_URL"), size)
			b, _ := os.ReadFile(os.Getenv("HOLDFAST_FAILPOINT_TRACE"))
			if strings.Count(string(b), "\n") != n+1 || why != "" {
				tell("wrong", size, why)
			}
		}
		body := io.MultiReader(strings.NewReader("123"), strings.NewReader("45"))
		req, _ := http.NewRequestWithContext(Sent(context.Background(), ToolAfterSend), http.MethodPost, os.Getenv("TEST_URL"), body)
		if resp, err := c.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	})
	cmd.Env = append(cmd.Env, "TEST_URL="+web.URL, "HOLDFAST_FAILPOINT_TRACE="+trace)
	out, err := cmd.CombinedOutput()
	if wrong := said(out, "wrong"); err != nil || len(wrong) > 0 {
		t.Errorf("%v, %q", err, wrong)
	}
	if b, _ := os.ReadFile(trace); strings.Count(string(b), ToolAfterSend+" ") != len(sizes)+1 {
		t.Errorf("%d passings, want one for each of %d requests", strings.Count(string(b), ToolAfterSend+" "), len(sizes)+1)
	}
}

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// TestNobodyHearsAnAnswerWhileSomebodyIsHeldAfterTheRequest: not over a connection that is used again either.
func TestNobodyHearsAnAnswerWhileSomebodyIsHeldAfterTheRequest(t *testing.T) {
	t.Parallel()
	var got atomic.Int32
	web := counter(&got)
	defer web.Close()
	cmd := again(t, "tool.after_send:2=hang:300ms, tool.after_send:3=error", "", func() {
		c := client()
		for n := 1; n <= 3; n++ {
			reused := false
			ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { reused = c.Reused }})
			began := time.Now()
			why := post(Sent(ctx, ToolAfterSend), c, os.Getenv("TEST_URL"), 10)
			tell("sent", n, "reused", reused, "held", time.Since(began) >= 300*time.Millisecond, "well", why == "")
		}
	})
	cmd.Env = append(cmd.Env, "TEST_URL="+web.URL)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	lines := said(out, "sent")
	if len(lines) != 3 || lines[0] != "sent 1 reused false held false well true" || !strings.HasSuffix(lines[1], "held true well true") ||
		!strings.HasSuffix(lines[2], "well false") || !strings.Contains(string(out), "reused true") {
		t.Errorf("%q, want the second held and the third failed, over one connection", lines)
	}
	if got.Load() != 3 {
		t.Errorf("%d requests arrived, want 3: all have left", got.Load())
	}
}

// late takes a while to read.
type late struct{ io.Reader }

func (l late) Read(b []byte) (int, error) {
	time.Sleep(200 * time.Millisecond)
	return l.Reader.Read(b)
}

// TestTheWindowBeforeASendIsMeasuredOnceForEach: from the last look at the clock to the first bytes, for actions only.
// What a gate takes is no part of it, nor what comes after the first bytes; what happens between the two is.
func TestTheWindowBeforeASendIsMeasuredOnceForEach(t *testing.T) {
	t.Parallel()
	var got atomic.Int32
	web := counter(&got)
	defer web.Close()
	widths := filepath.Join(t.TempDir(), "widths")
	cmd := again(t, "worker.ready=error", "", func() {
		ctx := Sent(context.Background(), ToolAfterSend)
		slow := func(when *func()) context.Context {
			return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { (*when)() }})
		}
		gate := func() { time.Sleep(200 * time.Millisecond) }
		body := io.MultiReader(strings.NewReader(strings.Repeat("x", 64<<10)), late{strings.NewReader("the end")})
		send(slow(&gate), client(), os.Getenv("TEST_URL"), body, 64<<10+len("the end"))
		post(Sent(context.Background(), ModelAfterRequest), client(), os.Getenv("TEST_URL"), 10)
		r, w, _ := os.Pipe()
		p := Pipe(w)
		Leaves(ctx, p)
		time.Sleep(50 * time.Millisecond)
		_, _ = p.Write([]byte("a call"))
		_, _ = p.Write([]byte("a reply"))
		Leaves(context.Background(), p)
		_, _ = p.Write([]byte("a question"))
		_, _ = r.Close(), p.Close()
	})
	cmd.Env = append(cmd.Env, "TEST_URL="+web.URL, "HOLDFAST_FAILPOINT_WIDTH="+widths)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b, err := os.ReadFile(widths)
	if err != nil {
		t.Fatal(err)
	}
	var took []time.Duration
	for line := range strings.Lines(string(b)) {
		took = append(took, time.Duration(atoi(strings.TrimSpace(line))))
	}
	if len(took) != 2 || took[0] <= 0 || took[0] > 150*time.Millisecond || took[1] < 50*time.Millisecond {
		t.Errorf("%v, want that of the request without its gate, and that of the call", took)
	}
	if slices.Contains(took, 0) {
		t.Error("a window of nothing")
	}
}

// TestACallInAPipePassesItsPlaceWhenItIsWritten: no other message does.
func TestACallInAPipePassesItsPlaceWhenItIsWritten(t *testing.T) {
	t.Parallel()
	out, err := again(t, "tool.after_send:1=error", "", func() {
		r, w, _ := os.Pipe()
		p := Pipe(w)
		_, before := p.Write([]byte("hello "))
		Leaves(Sent(context.Background(), ToolAfterSend), p)
		n, call := p.Write([]byte("call "))
		_, after := p.Write([]byte("reply"))
		_ = w.Close()
		b, _ := io.ReadAll(r)
		tell("wrote", string(b), n, before == nil, call != nil, after == nil)
	}).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := said(out, "wrote"); !slices.Equal(got, []string{"wrote hello call reply 5 true true true"}) {
		t.Errorf("%q, want only the call to fail, after it was written", got)
	}
}
