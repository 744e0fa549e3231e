// Package failpoint lets a test kill, freeze or fail the process at the moments that matter: between
// what the outside world has done and what we have written down about it.
//
// It does something only in a binary built with the tag "failpoint"; in every other build each function
// is empty and inlined away, and the environment variables are not read. [Points] names every place
// there is.
//
// HOLDFAST_FAILPOINT holds a comma-separated list of rules, each "name[:n[-m]]=action": the action is taken at
// the n-th passing in this process, at those from the n-th to the m-th, or at every one. The actions:
//
//	kill               the process sends itself SIGKILL
//	freeze:<duration>  the process sends itself SIGSTOP, and is sent SIGCONT after that time: nothing of it runs
//	hang:<duration>    only whoever passes sleeps, then goes on: an attempt that was given up and wakes as a zombie
//	error[:<errno>]    fails the step, where the place can fail; the error wraps that of the operating system (ENOSPC)
//	file:<path>        whoever passes waits until the file exists, then goes on
//
// If HOLDFAST_FAILPOINT_LOG names a file, each passing that acts first appends the line "<name> <n> <Unix time in
// nanoseconds> <pid>" to it and syncs it, so that a test knows that it happened. HOLDFAST_FAILPOINT_TRACE is the same
// for every passing, whether it acts or not, and is not synced. HOLDFAST_FAILPOINT_WIDTH gets a line for each send of
// an action over HTTP or to an MCP server: the nanoseconds from the last look at the clock, after all that tool.last_check
// does, to the system call that sends the first bytes. Processes may share the files.
package failpoint
