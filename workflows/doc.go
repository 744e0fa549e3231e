// Package workflows holds the two workflows of Holdfast: Session, a conversation that outlives every
// process, and Turn, one message to its answer. The code is deterministic: no I/O, no clock but Temporal's,
// no randomness, no environment, and no map whose order decides anything. Activities are known by the names
// in package agent only, so that nothing here can reach the world but through Temporal.
//
// A change to the commands that a run issues goes through package versioning, and the recorded histories in
// tests/histories must still replay.
package workflows
