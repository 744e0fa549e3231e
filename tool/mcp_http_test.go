package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-run/holdfast/internal/secret"
)

type echoArgs struct {
	Text string `json:"text"`
}

// sdkServer is a server made with the official SDK. It reports calls of hang that were cancelled.
func sdkServer(t *testing.T) (_ *mcp.Server, cancelled <-chan struct{}) {
	done := make(chan struct{}, 1)
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, r *mcp.CallToolRequest, in echoArgs) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%s %v", in.Text, r.Params.Meta[MCPKey])}}}, nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "hang"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		select {
		case <-ctx.Done():
			done <- struct{}{}
		case <-t.Context().Done():
		}
		return nil, nil, errors.New("ended")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		_, err := r.Session.ListRoots(ctx, nil) //nolint:staticcheck // servers still ask for it
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(err)}}}, nil, nil
	})
	return s, done
}

func httpConfig(url string) MCPConfig {
	return MCPConfig{Name: "web", URL: url, ListTimeout: 10 * time.Second}
}

func TestSDKServersAreServedInEachWay(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*mcp.StreamableHTTPOptions{
		"stream": nil, "json": {JSONResponse: true}, "stateless": {Stateless: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, cancelled := sdkServer(t)
			web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, opts))
			t.Cleanup(web.Close)
			m := startMCP(t, httpConfig(web.URL))
			for range 2 {
				got, err := callMCP(t, m, "echo", `{"text":"hi"}`)
				if err != nil || got != "hi s~00000000:turn-1/1.1/abc" {
					t.Errorf("got %q, %v", got, err)
				}
			}
			if name == "stream" {
				if got, err := callMCP(t, m, "ask", `{}`); err != nil || !strings.Contains(got, "method not found") {
					t.Errorf("got %q, %v", got, err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			_, err := callMCPUntil(ctx, t, m, "hang", `{}`)
			wantMeaning(t, err, OutcomeAmbiguous, "did not answer in time")
			if name != "stateless" { // where nothing connects the cancellation with the call
				<-cancelled
			}
		})
	}
}

func TestSDKServerOverPipesIsServedAndAnnouncesChanges(t *testing.T) {
	t.Parallel()
	s, _ := sdkServer(t)
	cfg, err := checkMCP(MCPConfig{Name: "pipe", Command: []string{"unused"}})
	if err != nil {
		t.Fatal(err)
	}
	link := newMCPLink(cfg, nil)
	link.open = func(ctx context.Context) (*mcpSession, error) {
		ours, theirs := net.Pipe()
		if _, err := s.Connect(ctx, &mcp.IOTransport{Reader: theirs, Writer: theirs}, nil); err != nil {
			return nil, err
		}
		session := newMCPSession()
		session.conn = newStdioConn(ours, ours, 1<<20, func() { ours.Close() }, session.toolsChanged)
		return session, session.connect(ctx, protocol, session.conn)
	}
	m, err := connectMCP(t.Context(), cfg, link)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	if got, err := callMCP(t, m, "echo", `{"text":"hi"}`); err != nil || !strings.HasPrefix(got, "hi") {
		t.Errorf("got %q, %v", got, err)
	}
	s.RemoveTools("echo")
	awaitMCP(t, func() bool { return link.current.stale.Load() })
	_, err = callMCP(t, m, "echo", `{"text":"hi"}`)
	wantMeaning(t, err, OutcomeFailed, "tool changed on the server")
	if _, err := callMCP(t, m, "ask", `{}`); err != nil {
		t.Error(err)
	}
}

// A rawWeb is a server written by hand. Its tools/call handler is the test's.
type rawWeb struct {
	*httptest.Server
	calls atomic.Int32
	inits atomic.Int32

	mu      sync.Mutex
	answer  func(w http.ResponseWriter, r *http.Request, req rawRequest)
	session string
	tools   string
	resume  func(w http.ResponseWriter)
}

func newRawWeb(t *testing.T) *rawWeb {
	w := &rawWeb{session: "one", tools: `{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}`}
	w.Server = httptest.NewServer(w)
	t.Cleanup(w.CloseClientConnections)
	t.Cleanup(w.Close)
	return w
}

func (s *rawWeb) on(answer func(w http.ResponseWriter, r *http.Request, req rawRequest)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *rawWeb) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	session, answer, tools, resume := s.session, s.answer, s.tools, s.resume
	s.mu.Unlock()
	if r.Method == http.MethodGet {
		resume(w)
		return
	}
	var req rawRequest
	b, _ := io.ReadAll(r.Body)
	_ = json.Unmarshal(b, &req)
	if req.Method != "initialize" && r.Header.Get("Mcp-Session-Id") != session {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch req.Method {
	case "initialize":
		s.inits.Add(1)
		w.Header().Set("Mcp-Session-Id", session)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}}`, req.ID)
	case "tools/list":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, tools)
	case "tools/call":
		s.calls.Add(1)
		answer(w, r, req)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func mcpOK(w http.ResponseWriter, req rawRequest) {
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"fine"}]}}`, req.ID)
}

// Each answer is given to one call while another one is under way: the other one must not notice.
func TestWhatAnHTTPAnswerMeansAndThatItTouchesNoOtherCall(t *testing.T) {
	t.Parallel()
	stream := func(w http.ResponseWriter, text string) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, text)
	}
	status := func(code int) func(http.ResponseWriter, *http.Request, rawRequest) {
		return func(w http.ResponseWriter, _ *http.Request, req rawRequest) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"hunter22secret"}}`, req.ID)
		}
	}
	for name, tc := range map[string]struct {
		answer func(w http.ResponseWriter, r *http.Request, req rawRequest)
		means  Outcome
		want   string
	}{
		"400": {status(400), OutcomeFailed, "answered HTTP 400 Bad Request"},
		"401": {status(401), OutcomeFailed, "401"},
		"403": {status(403), OutcomeFailed, "403"},
		"408": {status(408), OutcomeAmbiguous, "408"},
		"409": {status(409), OutcomeAmbiguous, "409"},
		"413": {status(413), OutcomeFailed, "413"},
		"429": {status(429), OutcomeAmbiguous, "429"},
		"500": {status(500), OutcomeAmbiguous, "500"},
		"503": {status(503), OutcomeAmbiguous, "503"},
		"302": {func(w http.ResponseWriter, r *http.Request, _ rawRequest) {
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
		}, OutcomeAmbiguous, "302"},
		"307 elsewhere": {func(w http.ResponseWriter, r *http.Request, _ rawRequest) {
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusTemporaryRedirect)
		}, OutcomeFailed, "307"},
		"html": {func(w http.ResponseWriter, _ *http.Request, _ rawRequest) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>")
		}, OutcomeAmbiguous, `"text/html"`},
		"no json":   {func(w http.ResponseWriter, _ *http.Request, _ rawRequest) { fmt.Fprint(w, "{") }, OutcomeAmbiguous, "cannot be read"},
		"array":     {func(w http.ResponseWriter, _ *http.Request, _ rawRequest) { fmt.Fprint(w, "[]") }, OutcomeAmbiguous, "cannot be read"},
		"too large": {func(w http.ResponseWriter, _ *http.Request, _ rawRequest) { fmt.Fprint(w, strings.Repeat(" ", 3<<20)) }, "", "larger than 1 MiB"},
		"cut": {func(w http.ResponseWriter, _ *http.Request, _ rawRequest) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, `{"jsonrpc"`)
		}, OutcomeAmbiguous, "broke off"},
		"hang up": {func(http.ResponseWriter, *http.Request, rawRequest) { panic(http.ErrAbortHandler) }, OutcomeAmbiguous, "EOF"},
		"empty stream": {func(w http.ResponseWriter, _ *http.Request, _ rawRequest) {
			stream(w, ": hello\n\n")
		}, OutcomeAmbiguous, "terminated without response"},
		"bad event": {func(w http.ResponseWriter, _ *http.Request, _ rawRequest) {
			stream(w, "data: {]\n\n")
		}, OutcomeAmbiguous, "cannot be read"},
		"large event": {func(w http.ResponseWriter, _ *http.Request, _ rawRequest) {
			stream(w, "data: "+strings.Repeat("x", 3<<20)+"\n\n")
		}, "", "larger than 1 MiB"},
		"rpc error": {func(w http.ResponseWriter, _ *http.Request, req rawRequest) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no hunter22secret"}}`, req.ID)
		}, OutcomeFailed, "no [secret] (error -32000)"},
		"asks for ever": {func(w http.ResponseWriter, _ *http.Request, _ rawRequest) {
			stream(w, strings.Repeat("data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n\n", 200))
		}, OutcomeAmbiguous, "again and again"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			web := newRawWeb(t)
			cfg := httpConfig(web.URL)
			cfg.MaxResult = 1 << 20
			m := startMCP(t, cfg)
			arrived, release := make(chan struct{}), make(chan struct{})
			web.on(func(w http.ResponseWriter, _ *http.Request, req rawRequest) {
				close(arrived)
				<-release
				mcpOK(w, req)
			})
			other := make(chan error, 1)
			go func() {
				_, err := callMCP(t, m, "t", `{}`)
				other <- err
			}()
			<-arrived
			web.on(tc.answer)
			got, err := callMCP(t, m, "t", `{}`)
			if tc.means == "" {
				if err != nil || !strings.Contains(got, tc.want) {
					t.Errorf("got %q, %v", got, err)
				}
			} else {
				wantMeaning(t, err, tc.means, tc.want)
				if strings.Contains(err.Error(), "hunter22") {
					t.Error(err)
				}
				if RetryAfter(err) == 7*time.Second != (tc.want == "408" || tc.want == "409" || tc.want == "429" || tc.want == "500" || tc.want == "503") {
					t.Errorf("to wait for: %s", RetryAfter(err))
				}
			}
			close(release)
			if err := <-other; err != nil {
				t.Errorf("another call suffered: %v", err)
			}
			if n := web.calls.Load(); n != 2 {
				t.Errorf("%d calls arrived, want 2", n)
			}
		})
	}
}

func TestASessionThatTheServerForgotIsMadeAnewAndTheCallSentOnce(t *testing.T) {
	t.Parallel()
	web := newRawWeb(t)
	web.on(func(w http.ResponseWriter, _ *http.Request, req rawRequest) { mcpOK(w, req) })
	m := startMCP(t, httpConfig(web.URL))
	web.mu.Lock()
	web.session = "two"
	web.mu.Unlock()
	wantMCPText(t, m, "t", "fine")
	if web.inits.Load() != 2 || web.calls.Load() != 1 {
		t.Errorf("%d sessions, %d calls", web.inits.Load(), web.calls.Load())
	}
}

func TestAnHTTPServerThatIsGoneGetsNothing(t *testing.T) {
	t.Parallel()
	web := newRawWeb(t)
	m := startMCP(t, httpConfig(web.URL))
	web.CloseClientConnections()
	web.Close()
	_, err := callMCP(t, m, "t", `{}`)
	wantMeaning(t, err, OutcomeNotSent, "refused")
}

func TestAnAnswerStreamIsReadAcrossLinesEventsAndResumption(t *testing.T) {
	t.Parallel()
	web := newRawWeb(t)
	web.on(func(w http.ResponseWriter, _ *http.Request, req rawRequest) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, ": comment\r\nid: 1\r\ndata:\r\n\r\nno colon\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{}}\n\n"+
			"event: other\ndata: nonsense\n\nid: 2\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%s,\ndata: \"result\":{\"content\":[{\"type\":\"text\",\"text\":\"fine\"}]}}\n\n", req.ID)
	})
	wantMCPText(t, startMCP(t, httpConfig(web.URL)), "t", "fine")
}

func TestABrokenAnswerStreamIsTakenUpAgain(t *testing.T) {
	t.Parallel()
	web := newRawWeb(t)
	var id atomic.Value
	web.on(func(w http.ResponseWriter, _ *http.Request, req rawRequest) {
		id.Store(string(req.ID))
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "id: 1\nretry: 10\ndata:\n\n")
	})
	for _, tc := range []struct {
		name   string
		resume func(w http.ResponseWriter)
		want   string
	}{
		{"answered", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: 2\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"fine\"}]}}\n\n", id.Load())
		}, ""},
		{"refused", func(w http.ResponseWriter) { w.WriteHeader(http.StatusMethodNotAllowed) }, "405"},
		{"hung up", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "could not be taken up again"},
	} {
		web.mu.Lock()
		web.resume = tc.resume
		web.mu.Unlock()
		m := startMCP(t, httpConfig(web.URL))
		got, err := callMCP(t, m, "t", `{}`)
		switch {
		case tc.want != "":
			wantMeaning(t, err, OutcomeAmbiguous, tc.want)
			if m.link.current.over() {
				t.Errorf("%s: the session ended with the call", tc.name)
			}
		case err != nil || got != "fine":
			t.Errorf("%s: got %q, %v", tc.name, got, err)
		}
	}
}

func TestHeadersGoToTheConfiguredHostOnlyAndAreMasked(t *testing.T) {
	t.Parallel()
	web := newRawWeb(t)
	var seen atomic.Value
	web.on(func(w http.ResponseWriter, r *http.Request, _ rawRequest) {
		seen.Store(r.Header.Clone())
		http.Error(w, "bad token "+r.Header.Get("Authorization"), http.StatusUnauthorized)
	})
	cfg := httpConfig(web.URL)
	cfg.Headers = map[string]string{"Authorization": "Bearer hunter22secret"}
	m, err := ConnectMCP(t.Context(), cfg, secret.New("hunter22secret"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	_, err = callMCP(t, m, "t", `{}`)
	wantMeaning(t, err, OutcomeFailed, "bad token Bearer [secret]")
	h := seen.Load().(http.Header)
	if h.Get("Authorization") != "Bearer hunter22secret" || h.Get("Mcp-Protocol-Version") != "2025-06-18" || h.Get("Mcp-Session-Id") != "one" {
		t.Errorf("headers: %v", h)
	}
}

func TestArgumentsOverHTTPAreExact(t *testing.T) {
	t.Parallel()
	web := newRawWeb(t)
	var got atomic.Value
	web.on(func(w http.ResponseWriter, _ *http.Request, req rawRequest) {
		got.Store(string(req.Params))
		mcpOK(w, req)
	})
	m := startMCP(t, httpConfig(web.URL))
	args := `{"a":9007199254740993,"b":123456789012345678901234567890}`
	if _, err := callMCP(t, m, "t", args); err != nil {
		t.Fatal(err)
	}
	if s := got.Load().(string); !strings.Contains(s, `"arguments":`+args) {
		t.Error(s)
	}
}

func TestAnOldListingOfAnHTTPServerIsAskedForAnew(t *testing.T) {
	t.Parallel()
	web := newRawWeb(t)
	web.on(func(w http.ResponseWriter, _ *http.Request, req rawRequest) { mcpOK(w, req) })
	m := startMCP(t, httpConfig(web.URL))
	web.mu.Lock()
	web.tools = `{"tools":[{"name":"t","description":"now deletes","inputSchema":{"type":"object"}}]}`
	web.mu.Unlock()
	wantMCPText(t, m, "t", "fine")
	m.link.current.listedAt.Store(time.Now().Add(-relistAfter).UnixNano())
	_, err := callMCP(t, m, "t", `{}`)
	wantMeaning(t, err, OutcomeFailed, "tool changed on the server")
	if web.calls.Load() != 1 {
		t.Error("the changed tool was called")
	}
}

func TestAddressesThatTheFileDoesNotNameAreNotConnectedTo(t *testing.T) {
	t.Parallel()
	_, err := ConnectMCP(t.Context(), MCPConfig{Name: "meta", URL: "http://[::ffff:169.254.169.254]/", Refuse: nil, ListTimeout: time.Second}, nil)
	if err == nil {
		t.Fatal("connected")
	}
	web := newRawWeb(t)
	cfg := httpConfig(strings.Replace(web.URL, "127.0.0.1", "localhost", 1))
	cfg.Refuse = []string{strings.TrimPrefix(web.URL, "http://")}
	_, err = ConnectMCP(t.Context(), cfg, nil)
	if err == nil || !strings.Contains(err.Error(), "no tool may reach") {
		t.Error(err)
	}
}
