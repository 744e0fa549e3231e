//go:build unix && !linux

package demo

import "syscall"

// There is no death signal here: Ctrl-C ends every part, but a SIGKILL of the demo leaves them.
func sysProcAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
