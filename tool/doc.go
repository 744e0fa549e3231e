// Package tool is the public API for tools: what an agent can do to the world.
//
// A [Tool] says what it is in a [Spec] and does one thing in Do. Most tools are Go functions given to
// [New], HTTP requests described by an [HTTPConfig], or tools of an MCP server. A [Set] holds a worker's
// tools under their names and checks arguments against their schemas. Most readers want [New]; whoever
// writes a holdfast.yaml needs none of the rest.
//
// What matters most about a tool is what it declares about being sent twice (its [agent.Class], by
// default the most dangerous one) and what its errors mean: see [NotSent], [Failed] and [Ambiguous].
//
// A tool may also say how its destination is asked what became of a call ([Reconciler]), what state the target is
// in before one ([Observer]), how one is stopped ([Canceller]), and what undoes it ([Compensation]).
//
// The package runs nothing by itself. Admission, the dispatch record, retries and masking of secrets
// belong to the activity that calls Do.
package tool
