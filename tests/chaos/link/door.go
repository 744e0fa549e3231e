//go:build unix

package link

import (
	"net"
	"syscall"
	"time"
)

// listen takes a port of 127.0.0.1 by its number: one that the system chose itself it takes back from a listener that is
// shut. Between the choice and the taking somebody else may come.
func listen() (*net.TCPListener, error) {
	addr := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}
	for tries := 1; ; tries++ {
		chosen, err := net.ListenTCP("tcp4", addr)
		if err != nil {
			return nil, err
		}
		number, _ := chosen.Addr().(*net.TCPAddr)
		if err := chosen.Close(); err != nil {
			return nil, err
		}
		l, err := net.ListenTCP("tcp4", number)
		if err == nil || tries == 10 {
			return l, err
		}
	}
}

// shut makes a listener refuse connections and keep its port, which a closed one would leave to whoever comes next. So
// it is on Linux; elsewhere connections go on being accepted, and are reset.
func shut(l *net.TCPListener) {
	control(l, func(fd int) { _ = syscall.Shutdown(fd, syscall.SHUT_RD) })
}

// open undoes shut.
func open(l *net.TCPListener) {
	control(l, func(fd int) { _ = syscall.Listen(fd, syscall.SOMAXCONN) })
}

func control(l *net.TCPListener, do func(fd int)) {
	if raw, err := l.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { do(int(fd)) })
	}
}

// accept takes connections for as long as the link is there. While the door is shut it only fails.
func (l *Link) accept() {
	for {
		conn, err := l.listener.AcceptTCP()
		if err == nil {
			l.welcome(conn)
			continue
		}
		l.mu.Lock()
		closed, changed := l.closed, l.changed
		l.mu.Unlock()
		if closed {
			return
		}
		select {
		case <-changed:
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// welcome begins to serve a connection.
func (l *Link) welcome(conn *net.TCPConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := &pair{link: l, client: conn}
	if l.closed || l.mode.kind == cut { // it came just before the door was shut
		l.hits++
		p.reset()
		return
	}
	l.pairs[p] = struct{}{}
	l.running.Go(p.serve)
}
