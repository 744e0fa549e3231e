//go:build failpoint

package failpoint

import (
	"context"
	"io"
	"net"
	"net/http/httptrace"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

type placeKey struct{}

// Sent returns a context in which the place is marked when a request over HTTP has left by a connection of [Dial]: when
// its last byte was written, or, where the connection cannot tell (TLS, a body of unknown length), at the latest when
// something is read. Nobody hears the answer while somebody is held there. httptrace alone would not do: it calls a
// request written while the end of it still lies in the transport's buffer. A message leaves a pipe of [Pipe] by [Leaves].
func Sent(ctx context.Context, place string) context.Context {
	return httptrace.WithClientTrace(context.WithValue(ctx, placeKey{}, place), &httptrace.ClientTrace{
		// Hooks that were added later are called earlier: by now a gate has said yes.
		GotConn: func(c httptrace.GotConnInfo) { depart(place, c.Conn, &request{}) },
	})
}

// Leaves marks, in a context of [Sent], that what is written next to a pipe of [Pipe] is the request.
func Leaves(ctx context.Context, pipe io.Writer) {
	if place, ok := ctx.Value(placeKey{}).(string); ok {
		depart(place, pipe, message{})
	}
}

// depart notes what leaves next through a connection or a pipe of ours; through others nothing is noticed.
func depart(place string, through any, shape shape) {
	if secured, ok := through.(interface{ NetConn() net.Conn }); ok {
		through = secured.NetConn()
	}
	if o, ok := through.(interface{ depart(d *departure) }); ok {
		o.depart(&departure{place: place, shape: shape, looked: time.Now()})
	}
}

// A departure is one request on its way out.
type departure struct {
	place  string
	shape  shape
	looked time.Time    // the last look at the clock before it
	width  atomic.Int64 // in nanoseconds from there to the first write
	passed sync.Once
}

// pass passes the place, once; whoever is held there holds up all others. Of an action it also notes the width of the
// window that cannot be closed: from the last look at the clock to the system call that sent the first bytes.
func (d *departure) pass() (err error) {
	d.passed.Do(func() {
		if d.place == ToolAfterSend {
			err = note(process().widths, strconv.FormatInt(d.width.Load(), 10), false)
		}
		if err == nil {
			err = AtErr(d.place)
		}
	})
	return err
}

// An outlet is what requests leave through, one after the other.
type outlet struct{ current atomic.Pointer[departure] }

func (o *outlet) depart(d *departure) { o.current.Store(d) }

// write writes with f, and passes the place of a request that has left with it.
func (o *outlet) write(b []byte, f func([]byte) (int, error)) (int, error) {
	d := o.current.Load()
	if d == nil {
		return f(b)
	}
	d.width.CompareAndSwap(0, max(time.Since(d.looked).Nanoseconds(), 1))
	n, err := f(b)
	if err == nil && d.shape.whole(b) {
		err = d.pass()
	}
	return n, err
}

// Dial returns dial with connections for [Sent].
func Dial(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &conn{Conn: c}, nil
	}
}

type conn struct {
	net.Conn
	outlet
}

func (c *conn) Write(b []byte) (int, error) { return c.write(b, c.Conn.Write) }

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if d := c.current.Load(); d != nil && n > 0 {
		if err := d.pass(); err != nil {
			return 0, err
		}
	}
	return n, err
}

// Pipe returns what writes to w, for [Leaves].
func Pipe(w io.WriteCloser) io.WriteCloser { return &pipe{WriteCloser: w} }

type pipe struct {
	io.WriteCloser
	outlet
}

func (p *pipe) Write(b []byte) (int, error) { return p.write(b, p.WriteCloser.Write) }

// SetWriteDeadline is that of the pipe, where it has one.
func (p *pipe) SetWriteDeadline(t time.Time) error {
	if d, ok := p.WriteCloser.(interface{ SetWriteDeadline(t time.Time) error }); ok {
		return d.SetWriteDeadline(t)
	}
	return os.ErrNoDeadline
}
