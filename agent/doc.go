// Package agent is the vocabulary of Holdfast: the identities, statuses, inputs and results that cross
// a process boundary, and the names under which workflows, activities, signals, queries and updates
// are registered.
//
// It imports nothing of ours and does no I/O, so that the deterministic workflow packages and the
// activities can meet in it without knowing each other. Everything here that has a json tag lands in
// Temporal's history as readable JSON: changing a tag is a change of the wire format, and recorded
// histories in tests/histories hold it still.
//
// Most readers want [Message], [TurnResult] and [Effect]; the rest is for those who extend the worker.
package agent
