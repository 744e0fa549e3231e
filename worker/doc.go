// Package worker reads holdfast.yaml, the operator's authority over models, tools and agents, and turns
// it into a running Temporal worker.
//
// [Load] decodes the file strictly and reports everything that is wrong with it at once, each problem
// with its place. [Config.Check] goes further and starts the MCP servers, proves the store and says what
// would be registered. [Run] connects to Temporal, registers workflows and activities and serves until its
// context ends, then lets running activities finish. While it runs, the file is read again whenever it
// changes: a higher serial replaces what new work sees in one step; what is running keeps what it has.
//
// The package owns the configuration and the wiring, and no behaviour of a turn: that is in packages
// workflows and activities, which meet only here.
package worker
