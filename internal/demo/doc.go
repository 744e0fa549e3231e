// Package demo shows the promise in less than a minute, on real parts: a Temporal server, a worker process, a
// payments service with books on disk and a model behind an OpenAI-compatible endpoint. An agent asks for a
// refund above the limit; the person at the terminal approves it or, where there is none, the demo does, with a
// throw-away key. The worker is killed (SIGKILL) twice: when it has the approval and has sent nothing, and when the
// payments service has committed and nobody has heard of it. A new worker finishes the turn. Then the books and
// the ledger are judged: exactly one refund, under one key, approved, or the demo fails. One that was declined
// must have left nothing at all.
//
// Both kills come from the payments service, which this process holds still at that moment: the tool looks at the
// order once more before it sends, and it waits for the answer to the payment. So the moment is the same in every
// run, with the binary that users have.
//
// The worker and the clients are subprocesses of the holdfast command itself, so that what is shown is what a
// user has; the payments service and the scripted model run in this process, which outlives the kill. All
// parts listen on free ports of the loopback interface and keep their files in one temporary folder. No
// process outlives [Run], nor, on Linux, this process.
package demo
