// Package demo shows the promise in about a minute, on real parts: a Temporal server, a worker process, a
// payments service with books on disk and a model behind an OpenAI-compatible endpoint. An agent looks an
// order up and refunds it; the worker is killed (SIGKILL) after the payments service has committed and
// before anybody has heard of it; a new worker finishes the turn. Then the books are judged: exactly one
// refund, or the demo fails.
//
// The worker and the client are subprocesses of the holdfast command itself, so that what is shown is what a
// user has; the payments service and the scripted model run in this process, which outlives the kill. All
// parts listen on free ports of the loopback interface and keep their files in one temporary folder. No
// process outlives [Run], nor, on Linux, this process.
package demo
