// Command bench compares one job done in three ways on the same Temporal dev server in the same run:
//
//   - holdfast: a session, its turn, model and tool activities, as a user gets them;
//   - naive: a loop that hands the whole conversation to each model activity and gets the answer back, with
//     Temporal's default retries, as most first agents on Temporal are written;
//   - floor: the same loop with constant-size references and the conversation in the worker's memory. Nothing
//     is durable: it is what the server and the SDK cost when the agent costs nothing.
//
// The job is one message, K steps that each call a tool once, and an answer. All three ask the same scripted
// model over real HTTP and call the same Go function. Each way has a worker process of its own, so that its
// CPU can be told apart. Variants take turns within every repetition and only ratios between them mean
// anything: the machine is never quiet.
//
// The numbers that matter are in docs/BENCH.md, with how they came about.
package main
