// Package naive is the agent loop that everybody writes first, on the same server: activities with Temporal's default
// retries, no keys, no records, an approval that is a signal with a boolean. It is here so that a reader sees what the
// promise is worth.
//
// loop.go is the loop. Its worker is a process of its own, with the places of package failpoint around the loop's steps,
// and [Run] makes a cell happen to it in a world of the harness. The benchmark has a loop of its own: that one does no
// work outside, asks nobody, and has Holdfast's activity names, because its histories are compared.
package naive
