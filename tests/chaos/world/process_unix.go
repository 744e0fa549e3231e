//go:build unix && !linux

package world

import "syscall"

// A group of its own keeps the terminal's Ctrl-C away from a worker, which the harness ends itself.
func groupOfItsOwn() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
