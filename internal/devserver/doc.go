// Package devserver starts Temporal's development server as a child process: for "holdfast dev", for the
// demo and for the tests that need a real server.
//
// It owns the child: the server hears nothing of the terminal's Ctrl-C, stops when [Server.Stop] says so,
// and dies with this process even when this process is killed (on Linux). It finds the temporal command
// but never downloads or builds one; that is the Makefile's.
//
// The server gets settings that make a lone agent fast: a stock development server polls its queues at most
// 20 times a second, which costs every step about 50 ms of waiting.
package devserver
