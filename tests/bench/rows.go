package main

import (
	"context"
	"slices"
	"time"
)

// A row is what was found out about a variant in a cell. Times are in milliseconds, medians over all turns
// or repetitions; counts are per turn unless they say otherwise.
type row struct {
	Latency    float64 `json:"latency"`    // of a turn
	Step       float64 `json:"step"`       // from one model call to the next, by the server's clock
	Throughput float64 `json:"throughput"` // turns a second
	WorkerCPU  float64 `json:"workerCPU"`
	ServerCPU  float64 `json:"serverCPU"`
	Turn       tally   `json:"turn"`      // the history of one turn, all runs
	PerStep    tally   `json:"perStep"`   // the median step
	BytesEnd   float64 `json:"bytesEnd"`  // bytes of the last tenth of the steps by those of the first
	Heartbeat  float64 `json:"heartbeat"` // per activity: billed, and in no history
	Requests   float64 `json:"requests"`  // to the Temporal server, polls included
	Reached    int     `json:"reached"`   // steps, when the server ended it
	// Reps are the figures that ratios are made of, one for each repetition.
	Reps []rep `json:"reps"`
}

type rep struct {
	Step       float64 `json:"step"`
	Latency    float64 `json:"latency"`
	Throughput float64 `json:"throughput"`
	WorkerCPU  float64 `json:"workerCPU"`
	ServerCPU  float64 `json:"serverCPU"`
}

// seen bounds the histories that are read for one repetition.
const seen = 5

func (l *lab) row(ctx context.Context, c cell, ss []sample) (row, error) {
	var r row
	var latencies []float64
	var steps []part
	var turns float64
	for _, s := range ss {
		n := float64(len(s.ids))
		turns += n
		r.Heartbeat += float64(s.heartbeats)
		r.Requests += float64(s.requests)
		one := rep{
			Latency: median(millis(s.latencies)), Throughput: float64(len(s.latencies)) / s.wall.Seconds(),
			WorkerCPU: ms(s.worker) / n, ServerCPU: ms(s.server) / n,
		}
		latencies = append(latencies, millis(s.latencies)...)
		var own []part
		for _, id := range s.ids[:min(seen, len(s.ids))] {
			p, err := l.look(ctx, id, &r)
			if err != nil {
				return r, err
			}
			own = append(own, p...)
		}
		one.Step = median(each(own, func(p part) float64 { return ms(p.took) }))
		r.Reps = append(r.Reps, one)
		steps = append(steps, own...)
	}
	r.Latency = median(latencies)
	r.Step = median(each(r.Reps, func(p rep) float64 { return p.Step }))
	r.Throughput = median(each(r.Reps, func(p rep) float64 { return p.Throughput }))
	r.WorkerCPU = median(each(r.Reps, func(p rep) float64 { return p.WorkerCPU }))
	r.ServerCPU = median(each(r.Reps, func(p rep) float64 { return p.ServerCPU }))
	r.PerStep = tally{
		int(median(each(steps, func(p part) float64 { return float64(p.Events) }))),
		int(median(each(steps, func(p part) float64 { return float64(p.Bytes) }))),
		int(median(each(steps, func(p part) float64 { return float64(p.Actions) }))),
	}
	r.Requests /= turns
	r.Heartbeat /= turns * float64(2*c.Steps+1)
	return r, nil
}

// look reads the history of a turn and returns its steps.
func (l *lab) look(ctx context.Context, id string, r *row) ([]part, error) {
	rs, err := runs(ctx, l.client, id)
	if err != nil {
		return nil, err
	}
	var steps []part
	var t tally
	for _, h := range rs {
		steps = append(steps, h.parts(step)...)
		t = t.plus(h.tally())
	}
	r.Turn = t
	if last := rs[len(rs)-1]; last[len(last)-1].GetWorkflowExecutionTerminatedEventAttributes() != nil {
		r.Reached = answered(rs)
	}
	if n := len(steps); n >= 10 {
		bytes := each(steps, func(p part) float64 { return float64(p.Bytes) })
		r.BytesEnd = median(bytes[n-n/10:]) / median(bytes[:n/10])
	}
	return steps, nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func millis(ds []time.Duration) []float64 { return each(ds, ms) }

func each[T any](in []T, f func(T) float64) []float64 {
	out := make([]float64, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}

// median returns 0 for nothing.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(v))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// ratio is the median over the repetitions of a's figure by b's: both were measured at the same time.
func ratio(a, b row, of func(rep) float64) float64 {
	var out []float64
	for i := range min(len(a.Reps), len(b.Reps)) {
		if d := of(b.Reps[i]); d > 0 {
			out = append(out, of(a.Reps[i])/d)
		}
	}
	return median(out)
}
