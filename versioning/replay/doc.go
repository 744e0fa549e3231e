// Package replay runs recorded histories through the workflow code of this build and says where the two part.
//
// Temporal's own replay compares the kinds and the order of commands and little of what is in them: changed
// arguments, another timer, another child's id or another result pass (sdk-go internal_task_handlers.go,
// isCommandMatchEvent). This package compares these as well, by watching what the code asks for: the inputs
// of activities, children, signals and continued runs, timers' durations, search attributes, change numbers,
// the results of updates, and how a run ends. The input of a local activity stands in no history, so only
// its type is held; options such as time-outs and summaries may change freely. What is JSON is compared as a value, also
// the state inside of a checkpoint: members may change their order. The history of a run that was reset
// begins with what another run asked for: there, that the run was reset is no difference.
//
// A replayed run answers queries, as its code does in the state in which history leaves it, and what differs is
// explained to whoever has to decide: see [Replayed.Query] and [Explain].
//
// It reads bytes and calls workflow code; it does no I/O. Histories are foreign: what cannot be one is refused
// with the reason.
package replay
