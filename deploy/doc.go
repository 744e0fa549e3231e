// Package deploy is what an operator does with builds: it looks at the runs of a namespace through the eyes of this
// build before a rollout, moves builds of a worker deployment in and out of service, and helps runs that no build
// can go on with.
//
// It stands beside starter, which only parses flags and prints. It reads Temporal and the store and writes neither,
// but for the commands to the server that its functions are named after. The folder holds the stack's files, too.
package deploy
