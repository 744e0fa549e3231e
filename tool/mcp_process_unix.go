//go:build unix && !linux

package tool

import "syscall"

// A group of its own keeps the terminal's Ctrl-C away, so that running calls end in our order. Without a
// death signal the watchdog is what ends the server when this process is killed.
func serverAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
