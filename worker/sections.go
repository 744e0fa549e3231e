package worker

import (
	"math"

	"github.com/holdfast-run/holdfast/agent"
)

// config reads the file's top level. What a section may hold stands here, in sections_tools.go and in
// sections_policy.go, and nowhere else.
func (d *decoder) config(v value, c *Config) {
	d.object(v, fields{
		"serial": d.countInto(&c.Serial, math.MaxInt64),
		"store": func(v value) {
			d.object(v, fields{"url": d.textInto(&c.Store.URL), "seal": d.keyInto(&c.Store.Seal)})
		},
		"models": func(v value) {
			d.entries(v, func(name string, _ position, v value) { c.Models[name] = d.model(name, v) })
		},
		"tools": func(v value) {
			d.entries(v, func(name string, _ position, v value) { c.Tools[name] = d.tool(v) })
		},
		"agents": func(v value) {
			d.entries(v, func(name string, _ position, v value) { c.Agents[name] = d.agent(v) })
		},
		"policy": func(v value) { d.policy(v, c) },
		"limits": func(v value) {
			d.object(v, fields{"result": d.sizeInto(&c.Limits.Result), "cache": d.sizeInto(&c.Limits.Cache)})
		},
		"worker": func(v value) { d.worker(v, &c.Worker) },
	})
}

func (d *decoder) worker(v value, w *Worker) {
	d.object(v, fields{
		"task_queue":     d.textInto(&w.TaskQueue),
		"deployment":     d.textInto(&w.Deployment),
		"concurrency":    d.intInto(&w.Concurrency),
		"health":         d.textInto(&w.Health),
		"stop_timeout":   d.durationInto(&w.StopTimeout),
		"sticky_timeout": d.durationInto(&w.StickyTimeout),
		"tool_heartbeat": d.durationInto(&w.ToolHeartbeat),
	})
}

func (d *decoder) model(name string, v value) Model {
	m := defaultModel()
	m.Model = name
	d.object(v, fields{
		"base_url": d.textInto(&m.BaseURL),
		"model":    d.textInto(&m.Model),
		"key":      d.keyInto(&m.Key),
		"prices": func(v value) {
			d.object(v, fields{
				"input":        d.decimalInto(&m.Prices.Input),
				"cached_input": d.decimalInto(&m.Prices.CachedInput),
				"output":       d.decimalInto(&m.Prices.Output),
			})
		},
		"limits": func(v value) {
			d.object(v, fields{
				"concurrency":   d.intInto(&m.Limits.Concurrency),
				"output_tokens": d.intInto(&m.Limits.OutputTokens),
			})
		},
		"timeouts": func(v value) {
			d.object(v, fields{
				"attempt":   d.durationInto(&m.Timeout.Attempt),
				"call":      d.durationInto(&m.Timeout.Call),
				"idle":      d.durationInto(&m.Timeout.Idle),
				"heartbeat": d.durationInto(&m.Timeout.Heartbeat),
			})
		},
		"stream": d.boolInto(&m.Stream),
		"temperature": func(v value) {
			t := -1.0
			if d.decimalInto(&t)(v); t >= 0 {
				f := float32(t)
				m.Temperature = &f
			}
		},
	})
	return m
}

func (d *decoder) agent(v value) Agent {
	a := Agent{Limits: defaultLimits()}
	d.object(v, fields{
		"instructions": d.instructionsInto(&a.Instructions),
		"model":        d.textInto(&a.Model),
		"tools":        d.textsInto(&a.Tools),
		"limits":       func(v value) { d.limits(v, &a.Limits) },
		"upgrade":      choiceInto(d, &a.Upgrade, upgrades),
		"policy":       func(v value) { d.layer(v, &a.Policy) },
	})
	return a
}

func (d *decoder) limits(v value, l *agent.Limits) {
	d.object(v, fields{
		"steps":          d.intInto(&l.Steps),
		"calls":          d.intInto(&l.Calls),
		"tokens":         d.countInto(&l.Tokens, math.MaxInt64),
		"cost":           d.microsInto(&l.Micros),
		"effects":        d.intInto(&l.Effects),
		"time":           d.spanInto(&l.Time),
		"faults":         d.intInto(&l.Faults),
		"wait":           d.spanInto(&l.Wait),
		"continue_after": d.intInto(&l.ContinueAfter),
		"session": func(v value) {
			var b agent.Budget
			if d.budget(v, &b); b != (agent.Budget{}) {
				l.Session = &b
			}
		},
	})
}

func (d *decoder) budget(v value, b *agent.Budget) {
	d.object(v, fields{
		"steps":   d.intInto(&b.Steps),
		"tokens":  d.countInto(&b.Tokens, math.MaxInt64),
		"cost":    d.microsInto(&b.Micros),
		"effects": d.intInto(&b.Effects),
		"time":    d.spanInto(&b.Time),
	})
}

// spanInto reads a duration that goes into history.
func (d *decoder) spanInto(to *agent.Duration) func(value) {
	return func(v value) {
		t := to.Std()
		d.durationInto(&t)(v)
		*to = agent.Duration(t)
	}
}
