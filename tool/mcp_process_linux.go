package tool

import "syscall"

// A group of its own keeps the terminal's Ctrl-C away, so that running calls end in our order.
func serverAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
