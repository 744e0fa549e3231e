package devserver

import "syscall"

// A group of its own keeps the terminal's Ctrl-C away from the server, so that the worker can stop first;
// the death signal takes the server along when we are killed.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
