package tool

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-run/holdfast/agent"
)

// An mcpSession is one session with a server: for stdio the life of its process, for HTTP that of the
// session that the server keeps.
type mcpSession struct {
	cs      *mcp.ClientSession
	conn    *stdioConn  // nil for HTTP
	process *mcpProcess // nil for HTTP
	ended   chan struct{}

	answered atomic.Bool // a call was answered
	stale    atomic.Bool // the server said that its tools changed
	listing  chan struct{}
	tools    atomic.Pointer[toolList]
	listedAt atomic.Int64 // Unix nanoseconds
}

// relistAfter is how old the listing of an HTTP server may be when a call is made. It has no way to tell
// us of a change while nothing is asked of it: the stream for that is one whose end the SDK takes for the
// end of the session, with all its calls, and proxies end idle streams.
const relistAfter = 5 * time.Minute

// protocol is asked for first: every server knows the handshake of that version, while a request that
// comes before it upsets some. A server that refuses it is asked in the latest way.
const protocol = "2025-11-25"

func openMCP(ctx context.Context, cfg MCPConfig) (*mcpSession, error) {
	s, err := openVersion(ctx, cfg, protocol)
	var refused *jsonrpc.Error
	if !errors.As(err, &refused) || ctx.Err() != nil {
		return s, err
	}
	switch refused.Code { // the SDK's errors about a connection have codes too
	case jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidRequest, jsonrpc.CodeInvalidParams, mcp.CodeUnsupportedProtocolVersion:
		if again, err := openVersion(ctx, cfg, ""); err == nil {
			return again, nil
		}
	}
	return s, err
}

func openVersion(ctx context.Context, cfg MCPConfig, version string) (*mcpSession, error) {
	s := newMCPSession()
	if cfg.URL != "" {
		return s, s.connect(ctx, version, &mcp.StreamableClientTransport{
			Endpoint: cfg.URL, HTTPClient: newMCPHTTP(cfg, maxLine(cfg)), DisableStandaloneSSE: true,
		})
	}
	p, err := startProcess(cfg)
	if err != nil {
		return nil, err
	}
	s.process = p
	s.conn = newStdioConn(p.in, p.out, maxLine(cfg), p.stop, s.toolsChanged)
	return s, s.connect(ctx, version, s.conn)
}

func newMCPSession() *mcpSession {
	return &mcpSession{ended: make(chan struct{}), listing: make(chan struct{}, 1)}
}

// maxLine bounds an answer as it comes: escapes and base64 make it larger than what it holds.
func maxLine(cfg MCPConfig) int { return int(2*cfg.MaxResult) + 64<<10 }

func (s *mcpSession) connect(ctx context.Context, version string, t mcp.Transport) error {
	client := mcp.NewClient(&mcp.Implementation{Name: "holdfast", Version: "1"}, &mcp.ClientOptions{
		Capabilities:           &mcp.ClientCapabilities{},
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { s.toolsChanged() },
		MultiRoundTrip:         &mcp.MultiRoundTripOptions{Disabled: true},
	})
	client.AddReceivingMiddleware(refuseRequests)
	cs, err := client.Connect(ctx, t, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("did not complete the protocol's handshake in time: %w", ctx.Err())
		}
		err = s.explain(fmt.Errorf("cannot be connected to: %w", err))
		s.close()
		return err
	}
	s.cs = cs
	go func() {
		_ = cs.Wait()
		close(s.ended)
	}()
	return nil
}

// refuseRequests answers what servers ask of their clients: sampling, elicitation, roots.
func refuseRequests(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		switch method {
		case "sampling/createMessage", "elicitation/create", "roots/list":
			return nil, refusal(method)
		}
		return next(ctx, method, r)
	}
}

// toolsChanged reports whether the change was news.
func (s *mcpSession) toolsChanged() bool { return s.stale.CompareAndSwap(false, true) }

func (s *mcpSession) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// list asks the server for its tools. An error leaves what is known.
func (s *mcpSession) list(ctx context.Context) error {
	s.stale.Store(false)
	list, err := listTools(ctx, s.cs)
	if err != nil {
		s.stale.Store(true)
		return err
	}
	if list != nil || s.tools.Load() == nil {
		s.tools.Store(&list)
	}
	s.listedAt.Store(time.Now().UnixNano())
	return nil
}

func (s *mcpSession) listed() toolList {
	if l := s.tools.Load(); l != nil {
		return *l
	}
	return nil
}

// current returns the digest of a tool as the server has it now, as far as that is known without asking
// before every call.
func (s *mcpSession) current(ctx context.Context, name string, timeout time.Duration) (agent.Digest, error) {
	select {
	case s.listing <- struct{}{}: // one asks for all
		defer func() { <-s.listing }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	old := s.conn == nil && time.Since(time.Unix(0, s.listedAt.Load())) > relistAfter
	if s.stale.Load() || old {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		if err := s.list(ctx); err != nil {
			return "", err
		}
	}
	return s.listed().digest(name), nil
}

// broken says whether err, which a call got, means the end of the session for all calls.
func (s *mcpSession) broken(err error) bool {
	if s.conn == nil {
		return !errors.Is(err, context.Canceled)
	}
	select {
	case <-s.conn.closed:
		return true
	case <-s.ended:
		return true
	case <-time.After(moment):
		return false
	}
}

// moment is how far apart the end of a connection, of its process and its last words may be noticed.
const moment = 100 * time.Millisecond

// silence adds what may be behind a server's not answering.
func (s *mcpSession) silence(err error) error {
	if s.conn != nil {
		if junk, _ := s.conn.why(); junk != "" {
			return fmt.Errorf("%w (meanwhile it printed %q on its standard output, which is reserved for the protocol)", err, junk)
		}
	}
	return err
}

// explain adds what is known about why a session ended.
func (s *mcpSession) explain(err error) error {
	if s.conn != nil {
		_, broken := s.conn.why()
		var talks *stdoutError
		switch {
		case errors.As(broken, &talks):
			err = talks
		case broken != nil:
			err = fmt.Errorf("%w: %w", err, broken)
		}
	}
	if s.process == nil {
		return err
	}
	select {
	case <-s.process.exited:
		err = fmt.Errorf("%w; it ended with %s", err, s.process.state)
	case <-time.After(moment):
	}
	if last := s.process.stderr.String(); last != "" {
		err = fmt.Errorf("%w; the end of its standard error:\n%s", err, last)
	}
	return err
}

// close ends the session and returns when its processes are gone.
func (s *mcpSession) close() {
	if s.conn != nil {
		s.conn.Close()
	}
	if s.cs != nil {
		_ = s.cs.Close()
	}
	if s.process != nil {
		<-s.process.exited
	}
}
