package main

import (
	"log/slog"
	"maps"
	"sync"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// requests counts a client's requests to the Temporal server by operation. Heartbeats are billed and stand
// in no history, so they can be counted here only.
type requests struct {
	client.MetricsHandler // what is not counted
	all                   *counted
	operation             string
}

type counted struct {
	mu sync.Mutex
	n  map[string]int64
}

func newRequests() *requests {
	return &requests{MetricsHandler: client.MetricsNopHandler, all: &counted{n: map[string]int64{}}}
}

// WithTags implements client.MetricsHandler.
func (r *requests) WithTags(tags map[string]string) client.MetricsHandler {
	if op, ok := tags["operation"]; ok {
		return &requests{MetricsHandler: r.MetricsHandler, all: r.all, operation: op}
	}
	return r
}

// Counter implements client.MetricsHandler.
func (r *requests) Counter(name string) client.MetricsCounter {
	if name != "temporal_request" {
		return r.MetricsHandler.Counter(name)
	}
	return counter(func(n int64) {
		r.all.mu.Lock()
		defer r.all.mu.Unlock()
		r.all.n[r.operation] += n
	})
}

type counter func(int64)

func (c counter) Inc(n int64) { c(n) }

func (r *requests) counts() map[string]int64 {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	return maps.Clone(r.all.n)
}

// heartbeat is the operation of a heartbeat that reached the server.
const heartbeat = "RecordActivityTaskHeartbeat"

func quiet() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
