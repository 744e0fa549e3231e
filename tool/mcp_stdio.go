package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-run/holdfast/internal/failpoint"
)

// A stdioConn is a connection to a server over its standard input and output, in place of the SDK's. That
// one ends for everybody when a line is too long or no JSON, waits without end when the server does not
// read, and queues whatever a server sends unasked.
type stdioConn struct {
	in    io.WriteCloser // the server's input
	lines *lines
	stop  func() // ends the server; called once
	stall time.Duration

	out     chan *outgoing
	replies chan []byte
	closed  chan struct{}
	once    sync.Once

	mu      sync.Mutex
	flights map[int64]*flight
	heard   bool   // the server has sent a message
	junk    string // the latest line that was none
	broken  error  // why the connection ended, if we ended it

	changed func() bool // the server's list of tools changed; true if that was news
}

var _ mcp.Connection = (*stdioConn)(nil)

type outgoing struct {
	ctx    context.Context
	bytes  []byte
	flight *flight
	done   chan error
}

// A server may leave this many refusals of its own requests unread before they are dropped.
const maxReplies = 16

// stallTime is how long a server may leave its input unread while a message is half written.
const stallTime = 2 * time.Minute

func newStdioConn(in io.WriteCloser, out io.Reader, maxLine int, stop func(), changed func() bool) *stdioConn {
	c := &stdioConn{
		in: failpoint.Pipe(in), lines: newLines(out, maxLine), stop: stop, stall: stallTime, changed: changed,
		out: make(chan *outgoing), replies: make(chan []byte, maxReplies), closed: make(chan struct{}),
		flights: map[int64]*flight{},
	}
	go c.write()
	return c
}

// Connect makes the connection its own transport.
func (c *stdioConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID is empty: there are none on stdio.
func (c *stdioConn) SessionID() string { return "" }

// Close ends the connection and has the server stopped, without waiting for either.
func (c *stdioConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.stop()
	})
	return nil
}

func (c *stdioConn) fail(err error) {
	c.mu.Lock()
	if c.broken == nil {
		c.broken = err
	}
	c.mu.Unlock()
	c.Close()
}

// why returns what the connection itself has to say about its end or a silence.
func (c *stdioConn) why() (junk string, broken error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.junk, c.broken
}

// Write hands a message to the writer. It returns when the message is written or ctx ends, which ends
// the wait and nothing else.
func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	o := &outgoing{ctx: ctx, bytes: append(b, '\n'), done: make(chan error, 1)}
	if r, ok := msg.(*jsonrpc.Request); ok && r.IsCall() {
		if o.flight = flightOf(ctx); o.flight != nil {
			c.register(ctx, r.ID, o.flight)
		}
	}
	select {
	case c.out <- o:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return io.ErrClosedPipe
	}
	select {
	case err := <-o.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-c.closed:
		return io.ErrClosedPipe
	}
}

// register notes whose the answer to id will be, until ctx ends.
func (c *stdioConn) register(ctx context.Context, id jsonrpc.ID, f *flight) {
	n, ok := id.Raw().(int64)
	if !ok {
		return
	}
	c.mu.Lock()
	c.flights[n] = f
	c.mu.Unlock()
	context.AfterFunc(ctx, func() { c.claim(n) })
}

func (c *stdioConn) claim(id int64) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flights[id]
	delete(c.flights, id)
	return f
}

func (c *stdioConn) write() {
	for {
		select {
		case <-c.closed:
			return
		case b := <-c.replies:
			if _, err := c.writeAll(b); err != nil {
				c.fail(err)
				return
			}
		case o := <-c.out:
			if err := c.send(o); err != nil {
				c.fail(err)
				return
			}
		}
	}
}

// send returns an error only when the connection is of no more use.
func (c *stdioConn) send(o *outgoing) error {
	if err := o.ctx.Err(); err != nil || o.flight != nil && !o.flight.begin() {
		o.done <- context.Canceled
		return nil
	}
	if o.flight != nil {
		failpoint.Leaves(o.ctx, c.in)
	}
	n, err := c.writeAll(o.bytes)
	if n == 0 && err != nil && o.flight != nil {
		o.flight.unsent()
	}
	o.done <- err
	return err
}

// writeAll writes in pieces, each of which the server must take before long.
func (c *stdioConn) writeAll(b []byte) (n int, err error) {
	const piece = 64 << 10
	d, hasDeadline := c.in.(interface{ SetWriteDeadline(time.Time) error })
	for n < len(b) {
		if hasDeadline {
			_ = d.SetWriteDeadline(time.Now().Add(c.stall))
		}
		m, err := c.in.Write(b[n:min(n+piece, len(b))])
		n += m
		if errors.Is(err, os.ErrDeadlineExceeded) && m > 0 {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return n, fmt.Errorf("it has not read its standard input for %s", c.stall)
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// Read returns the next message that concerns the SDK: answers, and the news that the tools changed.
func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := c.lines.next()
		switch {
		case errors.Is(err, errLineTooLong):
			if err := c.tooLong(line); err != nil {
				c.fail(err)
				return nil, err
			}
			continue
		case err != nil:
			return nil, err
		}
		msg, err := jsonrpc.DecodeMessage(line)
		if err != nil {
			if err := c.unreadable(line, err); err != nil {
				c.fail(err)
				return nil, err
			}
			continue
		}
		c.mu.Lock()
		c.heard = true
		c.mu.Unlock()
		if msg := c.accept(msg); msg != nil {
			return msg, nil
		}
	}
}

func (c *stdioConn) accept(msg jsonrpc.Message) jsonrpc.Message {
	switch msg := msg.(type) {
	case *jsonrpc.Response:
		if n, ok := msg.ID.Raw().(int64); ok {
			if f := c.claim(n); f != nil {
				return f.take(msg)
			}
		}
		return msg
	case *jsonrpc.Request:
		if msg.IsCall() {
			c.refuse(msg)
		} else if msg.Method == toolsChanged && c.changed() {
			return msg
		}
	}
	return nil
}

const toolsChanged = "notifications/tools/list_changed"

// refuse answers a request of the server: a ping, or something that we do not do. A server that does not
// read the answers gets no more of them.
func (c *stdioConn) refuse(r *jsonrpc.Request) {
	reply := &jsonrpc.Response{ID: r.ID, Result: json.RawMessage(`{}`)}
	if r.Method != "ping" {
		reply = &jsonrpc.Response{ID: r.ID, Error: refusal(r.Method)}
	}
	b, err := jsonrpc.EncodeMessage(reply)
	if err != nil {
		return
	}
	select {
	case c.replies <- append(b, '\n'):
	default:
	}
}

func refusal(method string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("this client does not answer %.80q", method)}
}

// unreadable deals with a line that is no message. Before the first message it ends the connection,
// because the server will hardly get better; later on only the call that it may have been the answer to.
func (c *stdioConn) unreadable(line []byte, cause error) error {
	quoted := printable(string(line[:min(len(line), 200)]))
	c.mu.Lock()
	c.junk = quoted
	heard := c.heard
	c.mu.Unlock()
	if !heard {
		return &stdoutError{printed: quoted}
	}
	var ids idFinder
	ids.feed(line)
	if f := c.claimText(ids.id); f != nil {
		f.fail(fmt.Errorf("the server's answer cannot be read: %w", cause))
	}
	return nil
}

func (c *stdioConn) tooLong(id []byte) error {
	c.mu.Lock()
	heard := c.heard
	c.mu.Unlock()
	if !heard {
		return errLineTooLong
	}
	if f := c.claimText(id); f != nil {
		f.fail(errAnswerTooLarge)
	}
	return nil
}

func (c *stdioConn) claimText(id []byte) *flight {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil {
		return nil
	}
	return c.claim(n)
}

// A stdoutError is a server's that talks where only the protocol may.
type stdoutError struct{ printed string }

func (e *stdoutError) Error() string {
	return fmt.Sprintf("printed %q on its standard output, which is reserved for the protocol; "+
		"have it log to standard error, or use another version of it", e.printed)
}
