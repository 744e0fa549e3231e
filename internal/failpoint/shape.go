//go:build failpoint

package failpoint

import (
	"bufio"
	"bytes"
	"net/http"
)

// A shape says of the pieces in which something is written which one ends it.
type shape interface{ whole(piece []byte) bool }

// A message is written in one piece.
type message struct{}

func (message) whole([]byte) bool { return true }

// A request of HTTP/1 says in its head how long its body is.
type request struct {
	head []byte // as far as it was written
	left int64  // of the body, when the head is over; below 0 nobody knows
	over bool
}

// maxHead bounds the search for the end of a head; what is encrypted has none.
const maxHead = 64 << 10

func (r *request) whole(piece []byte) bool {
	if !r.over {
		if len(r.head) > maxHead {
			return false
		}
		r.head = append(r.head, piece...)
		end := bytes.Index(r.head, []byte("\r\n\r\n"))
		if end < 0 {
			return false
		}
		piece = r.head[end+4:]
		r.over, r.left = true, length(r.head)
	}
	if r.left < 0 {
		return false
	}
	r.left -= int64(len(piece))
	return r.left == 0
}

// length returns the length of a request's body, below 0 if its head does not tell.
func length(head []byte) int64 {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return -1
	}
	return r.ContentLength
}
