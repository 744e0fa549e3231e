//go:build unix && !linux

package devserver

import "syscall"

// A group of its own keeps the terminal's Ctrl-C away from the server, so that the worker can stop first.
// There is no death signal here: if this process is killed, the server stays and the next start finds its
// port taken.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
