// Package docs holds what the documentation says against the code, so that neither drifts away from the other:
// every configuration is loaded, every command line is parsed by the command itself, Go code is the code of an
// example, links lead somewhere, docs/cli.md is what the help says, and the README's first agent, its program
// and its demo are run.
//
// A fenced block says what it is by the words after its backquotes:
//
//	yaml               a holdfast.yaml, or some of its sections; it must load and pass the check
//	yaml FILE, go FILE the file itself, or a part of it
//	sh                 command lines
//	text               what a command prints; nothing is held against it
//	text demo          what the demo prints, shortened
package docs
