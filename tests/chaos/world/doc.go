// Package world is what a run of the chaos harness happens in: a real Temporal server with its database on disk, real
// worker processes, a payments service and a bank behind MCP with books of their own, a model server that plays a
// script and counts what it charges, and connections that can go bad.
package world
