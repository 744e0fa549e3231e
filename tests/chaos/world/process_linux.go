package world

import "syscall"

// A group of its own keeps the terminal's Ctrl-C away from a worker, which the harness ends itself; the death signal
// takes it along when the harness is killed.
func groupOfItsOwn() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
