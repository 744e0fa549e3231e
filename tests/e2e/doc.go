// Package e2e holds the tests that need the real parts: the Temporal server, the worker's own binary as a
// subprocess, payments services and an MCP server with books of their own, and a model server that counts what it
// charged.
//
// It proves the promise by breaking things: each test kills, freezes or restarts something at a named
// place, and then asks four witnesses what happened: the destination's books, the model server's charges,
// the transcript and the turn's result. People decide by every way that they have, with keys that the tests make.
//
// What an effect ends as is data: boundary_test.go and bank_test.go hold the table of DESIGN section 6.
package e2e
