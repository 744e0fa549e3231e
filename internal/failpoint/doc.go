// Package failpoint lets a test kill, freeze or fail the process at the moments that matter: between
// what the outside world has done and what we have written down about it.
//
// It does something only in a binary built with the tag "failpoint"; in every other build each function
// is empty and inlined away, and the environment variables are not read. [Points] names every place
// there is.
//
// HOLDFAST_FAILPOINT holds a comma-separated list of rules, each "name[:n]=action": the action is taken at
// the n-th passing in this process, or at every passing where no n is given. The actions:
//
//	kill            the process sends itself SIGKILL
//	hang:<duration> sleeps, then goes on: an attempt that was given up and wakes as a zombie
//	error           fails the step, where the place can fail
//	file:<path>     waits until the file exists, then goes on
//
// If HOLDFAST_FAILPOINT_LOG names a file, each passing that acts first appends the line "<name> <n>" to it
// and syncs it, so that a test knows that it happened.
package failpoint
