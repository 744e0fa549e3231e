// Package starter is the command line: it starts agents, sends them messages, follows what they do and
// looks at what they did. A program with tools of its own gets the same command line by [Main].
//
// Commands talk to Temporal alone (the transcript also to the store), so each works from any machine and
// none is needed for a turn to go on. What they show of a turn is derived from its committed history and
// never from a copy. A history may come from an older or a broken worker: what cannot be decoded is shown
// as such.
//
// Each command is an options struct, a constructor for its flags and a run function. Nothing here decides
// anything about a turn.
package starter
