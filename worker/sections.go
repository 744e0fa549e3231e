package worker

import (
	"math"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// config reads the file's top level. What a section may hold stands here and nowhere else.
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
		"limits": func(v value) {
			d.object(v, fields{"result": d.sizeInto(&c.Limits.Result), "cache": d.sizeInto(&c.Limits.Cache)})
		},
		"worker": func(v value) { d.worker(v, &c.Worker) },
	})
}

func (d *decoder) worker(v value, w *Worker) {
	d.object(v, fields{
		"task_queue":     d.textInto(&w.TaskQueue),
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

func (d *decoder) tool(v value) Tool {
	t := Tool{ListTimeout: time.Minute}
	d.object(v, fields{
		"description":  d.textInto(&t.Description),
		"effect":       d.effectInto(&t.Effect),
		"window":       d.durationInto(&t.Window),
		"timeout":      d.durationInto(&t.Timeout),
		"parameters":   d.jsonInto(&t.Parameters),
		"identity":     d.textsInto(&t.Identity),
		"resource":     d.textInto(&t.Resource),
		"http":         func(v value) { t.HTTP = d.http(v) },
		"mcp":          func(v value) { t.MCP = d.mcp(v) },
		"trusted":      d.boolInto(&t.Trusted),
		"list_timeout": d.durationInto(&t.ListTimeout),
		"tools": func(v value) {
			t.Tools = map[string]Declaration{}
			d.entries(v, func(name string, _ position, v value) { t.Tools[name] = d.declaration(v) })
		},
	})
	return t
}

func (d *decoder) http(v value) *HTTP {
	h := &HTTP{}
	d.object(v, fields{
		"method":        d.textInto(&h.Method),
		"url":           d.textInto(&h.URL),
		"headers":       d.valuesInto(&h.Headers),
		"query":         d.textsInto(&h.Query),
		"body":          d.textInto(&h.Body),
		"allow_private": d.boolInto(&h.AllowPrivate),
		"max_result":    d.sizeInto(&h.MaxResult),
	})
	return h
}

func (d *decoder) mcp(v value) *MCP {
	m := &MCP{}
	d.object(v, fields{
		"command":       d.textsInto(&m.Command),
		"env":           d.valuesInto(&m.Env),
		"url":           d.textInto(&m.URL),
		"headers":       d.valuesInto(&m.Headers),
		"allow_private": d.boolInto(&m.AllowPrivate),
		"max_result":    d.sizeInto(&m.MaxResult),
		"concurrency":   d.intInto(&m.Concurrency),
	})
	return m
}

func (d *decoder) declaration(v value) Declaration {
	var t Declaration
	d.object(v, fields{
		"effect":   d.effectInto(&t.Effect),
		"window":   d.durationInto(&t.Window),
		"timeout":  d.durationInto(&t.Timeout),
		"identity": d.textsInto(&t.Identity),
		"resource": d.textInto(&t.Resource),
	})
	return t
}

func (d *decoder) agent(v value) Agent {
	a := Agent{Limits: defaultLimits()}
	wait := time.Duration(0)
	d.object(v, fields{
		"instructions": d.instructionsInto(&a.Instructions),
		"model":        d.textInto(&a.Model),
		"tools":        d.textsInto(&a.Tools),
		"limits": func(v value) {
			d.object(v, fields{
				"steps":          d.intInto(&a.Limits.Steps),
				"calls":          d.intInto(&a.Limits.Calls),
				"tokens":         d.countInto(&a.Limits.Tokens, math.MaxInt64),
				"cost":           d.microsInto(&a.Limits.Micros),
				"faults":         d.intInto(&a.Limits.Faults),
				"wait":           d.durationInto(&wait),
				"continue_after": d.intInto(&a.Limits.ContinueAfter),
			})
		},
	})
	a.Limits.Wait = agent.Duration(wait)
	return a
}

func (d *decoder) effectInto(to *agent.Class) func(value) {
	return func(v value) {
		s, ok := d.text(v)
		if !ok {
			return
		}
		switch c := agent.Class(s); c {
		case agent.ClassRead, agent.ClassIdempotent, agent.ClassReconcilable, agent.ClassOnce:
			*to = c
		default:
			d.fail(v.path, "%s is %q; want read (changes nothing), idempotent (honours the idempotency key), "+
				"reconcilable (can be asked what happened) or once (never sent twice)", v.shown(), clip(s))
		}
	}
}
