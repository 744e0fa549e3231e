// Package link makes the connection between two parts bad: a TCP proxy on the loopback interface that passes every
// byte at once until it is told otherwise, and can be told otherwise while connections are open.
//
// It knows nothing of what it carries. A stream that has lost bytes is never continued, since it would be one that
// nobody sent: connections that a mode has taken something from are reset when another mode follows.
package link
