// Package e2e holds the tests that need the real parts: the Temporal server, the worker's own binary as a
// subprocess, a payments service with books of its own, and a model server that counts what it charged.
//
// It proves the promise by breaking things: each test kills, freezes or restarts something at a named
// place, and then asks four witnesses what happened: the destination's books, the model server's charges,
// the transcript and the turn's result.
package e2e
