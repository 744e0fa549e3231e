package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	sdk "go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/activities"
	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/transcript"
	"github.com/holdfast-run/holdfast/workflows"
)

// A share is what a session costs beside its turns.
type share struct {
	PerTurn tally   `json:"perTurn"` // the median increase of the session's history
	Turns   int     `json:"turns"`
	Events  float64 `json:"events"`  // of all runs by turns: starts and continue-as-new included
	Actions float64 `json:"actions"` // the same
	Bytes   float64 `json:"bytes"`   // the same
}

// session measures a session of so many turns, two continue-as-new.
func (l *lab) session(ctx context.Context) (s share, err error) {
	s.Turns = 16
	id := l.id(holdfast)
	for n := range s.Turns {
		if _, err := l.send(ctx, string(holdfast), agentActs, id, n+1, job{1, kib}); err != nil {
			return s, err
		}
	}
	rs, err := runs(ctx, l.client, id)
	if err != nil {
		return s, err
	}
	var all tally
	var parts []part
	for _, r := range rs {
		all = all.plus(r.tally())
		parts = append(parts, r.parts(sessionTurn)...)
	}
	n := float64(s.Turns)
	s.Events, s.Actions, s.Bytes = float64(all.Events)/n, float64(all.Actions)/n, float64(all.Bytes)/n
	s.PerTurn = tally{
		int(median(each(parts, func(p part) float64 { return float64(p.Events) }))),
		int(median(each(parts, func(p part) float64 { return float64(p.Bytes) }))),
		int(median(each(parts, func(p part) float64 { return float64(p.Actions) }))),
	}
	return s, nil
}

// A distance is how far the two variants that are durable get with a thousand steps.
type distance struct {
	job
	Shown    string  `json:"shown"` // of each result to the model
	Holdfast row     `json:"holdfast"`
	Runs     int     `json:"runs"` // continue-as-new in between
	Minutes  float64 `json:"minutes"`
	Naive    int     `json:"naive"` // steps until the server terminated it
}

// long runs a thousand steps. The model is shown the beginning of each result only: no model takes the 16
// MB that the conversation would have, and the scripted one would take minutes to read them. The naive
// loop's results are as long, and go through history whole.
func (l *lab) long(ctx context.Context, steps int) (d distance, err error) {
	d.job, d.Shown = job{steps, 16 * kib}, "1KiB"
	const queue = "long"
	w, err := l.holdfast(queue, d.Shown)
	if err != nil {
		return d, err
	}
	defer w.stop()
	began := time.Now()
	id, err := l.send(ctx, queue, agentActs, l.id(holdfast), 1, d.job)
	if err != nil {
		return d, err
	}
	d.Minutes = time.Since(began).Minutes()
	rs, err := runs(ctx, l.client, id)
	if err != nil {
		return d, err
	}
	d.Runs = len(rs)
	if d.Holdfast, err = l.row(ctx, cell{job: d.job}, []sample{{ids: []string{id}, wall: time.Since(began)}}); err != nil {
		return d, err
	}
	id, err = l.loop(ctx, byNaive, d.job)
	if err == nil {
		return d, errors.New("the naive loop should have been terminated by the server, but completed")
	}
	if !terminated(err) {
		return d, fmt.Errorf("the naive loop should have been terminated by the server, but ended with %w", err)
	}
	if rs, err = runs(ctx, l.client, id); err != nil {
		return d, err
	}
	d.Naive = answered(rs)
	return d, nil
}

// A traffic is what a job asks of the store, per step.
type traffic struct {
	job
	Reads  bool `json:"reads"` // the tool
	Cold   bool `json:"cold"`  // the worker caches nothing, as if each step came to a new one
	Read   perStep
	Write  perStep
	Opened int64 `json:"opened"` // requests of a turn without steps
}

type perStep struct {
	Requests float64 `json:"requests"`
	Bytes    float64 `json:"bytes"`
}

// traffic counts a job's requests to the store, in a worker put together here, because a worker's own
// counters are not to be seen from outside.
func (l *lab) traffic(ctx context.Context, j job, reads, cold bool) (t traffic, err error) {
	t.job, t.Reads, t.Cold = j, reads, cold
	s, err := store.Open(ctx, store.Config{URL: l.storeURL(l.id("counted"))})
	if err != nil {
		return t, err
	}
	defer s.Close()
	cache := int64(128 << 20)
	if cold {
		cache = 0
	}
	stop, queue, err := l.serve(s, transcript.New(s, cache))
	if err != nil {
		return t, err
	}
	defer stop()
	name := agentActs
	if reads {
		name = agentReads
	}
	before := s.Stats()
	if _, err := l.send(ctx, queue, name, l.id(holdfast), 1, job{0, 0}); err != nil {
		return t, err
	}
	empty := s.Stats()
	t.Opened = empty.Reads + empty.Writes - before.Reads - before.Writes
	if _, err := l.send(ctx, queue, name, l.id(holdfast), 1, j); err != nil {
		return t, err
	}
	after, n := s.Stats(), float64(j.Steps)
	per := func(after, empty, before int64) float64 { return float64(after-empty-(empty-before)) / n }
	t.Read = perStep{per(after.Reads, empty.Reads, before.Reads), per(after.BytesRead, empty.BytesRead, before.BytesRead)}
	t.Write = perStep{per(after.Writes, empty.Writes, before.Writes), per(after.BytesWritten, empty.BytesWritten, before.BytesWritten)}
	return t, nil
}

// serve runs Holdfast's workflows and activities over a store and a log in this process.
func (l *lab) serve(s *store.Store, log *transcript.Log) (stop func(), queue string, err error) {
	queue = l.id("queue")
	own, err := tools()
	if err != nil {
		return nil, "", err
	}
	set, err := tool.NewSet(own...)
	if err != nil {
		return nil, "", err
	}
	m, err := openai.New(openai.Config{BaseURL: l.model.URL(), Model: "scripted", Stream: true})
	if err != nil {
		return nil, "", err
	}
	allowed, err := policy.New(policy.Config{
		Rules: []policy.Rule{{Name: "everything", Then: agent.DecisionAllow}}, Duplicates: policy.RepeatAllow,
	})
	if err != nil {
		return nil, "", err
	}
	snap := &activities.Snapshot{
		Serial: 1, Tools: set, Policy: allowed, Agents: map[string]agent.Definition{},
		Models: map[string]activities.Model{"scripted": {Name: "scripted", Client: m}},
	}
	for name, uses := range map[string]string{agentActs: toolActs, agentReads: toolReads} {
		t, _ := set.Lookup(uses)
		snap.Agents[name] = agent.Definition{
			Name: name, Instructions: instructions, Model: "scripted", Limits: agent.Limits{Steps: 5000, Calls: 10},
			Tools: []agent.ToolRef{{Name: uses, Version: t.Spec().Version}},
		}
	}
	c, err := client.Dial(client.Options{HostPort: l.server.Address(), Logger: quiet()})
	if err != nil {
		return nil, "", err
	}
	acts, err := activities.New(activities.Deps{Store: s, Log: log, Current: func() *activities.Snapshot { return snap }, Client: c})
	if err != nil {
		c.Close()
		return nil, "", err
	}
	w := sdk.New(c, queue, sdk.Options{DisableRegistrationAliasing: true})
	workflows.Register(w, workflows.Options{})
	acts.Register(w)
	if err := w.Start(); err != nil {
		c.Close()
		return nil, "", err
	}
	return func() { w.Stop(); c.Close() }, queue, nil
}
