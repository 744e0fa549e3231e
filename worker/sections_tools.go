package worker

import (
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

func (d *decoder) tool(v value) Tool {
	t := Tool{ListTimeout: time.Minute}
	d.object(v, fields{
		"risk":         choiceInto(d, &t.Harm.Risk, risks),
		"irreversible": d.boolInto(&t.Harm.Irreversible),
		"compensate":   func(v value) { t.Harm.Compensate = d.compensation(v) },
		"absent_after": d.durationInto(&t.Harm.AbsentAfter),
		"description":  d.textInto(&t.Description),
		"effect":       choiceInto(d, &t.Effect, effects),
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
		"reconcile":     func(v value) { h.Reconcile = d.httpAsk(v) },
		"observe":       func(v value) { h.Observe = d.httpAsk(v) },
	})
	return h
}

func (d *decoder) httpAsk(v value) *HTTPAsk {
	a := &HTTPAsk{Method: "GET"}
	d.object(v, fields{
		"method":  d.textInto(&a.Method),
		"url":     d.textInto(&a.URL),
		"query":   d.textsInto(&a.Query),
		"headers": d.valuesInto(&a.Headers),
		"found":   d.textInto(&a.Found),
		"absent":  d.textInto(&a.Absent),
	})
	return a
}

func (d *decoder) compensation(v value) *tool.Compensation {
	c := &tool.Compensation{}
	d.object(v, fields{"tool": d.textInto(&c.Tool), "args": d.namedTextsInto(&c.Args)})
	return c
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
		"effect":       choiceInto(d, &t.Effect, effects),
		"window":       d.durationInto(&t.Window),
		"timeout":      d.durationInto(&t.Timeout),
		"identity":     d.textsInto(&t.Identity),
		"resource":     d.textInto(&t.Resource),
		"risk":         choiceInto(d, &t.Harm.Risk, risks),
		"irreversible": d.boolInto(&t.Harm.Irreversible),
		"compensate":   func(v value) { t.Harm.Compensate = d.compensation(v) },
		"absent_after": d.durationInto(&t.Harm.AbsentAfter),
		"reconcile":    func(v value) { t.Reconcile = d.mcpAsk(v) },
		"observe":      func(v value) { t.Observe = d.mcpAsk(v) },
	})
	return t
}

func (d *decoder) mcpAsk(v value) *tool.MCPAsk {
	a := &tool.MCPAsk{}
	d.object(v, fields{
		"tool":   d.textInto(&a.Tool),
		"args":   d.namedTextsInto(&a.Args),
		"found":  d.textInto(&a.Found),
		"absent": d.textInto(&a.Absent),
	})
	return a
}

var risks = []choice[agent.Risk]{{agent.RiskLow, ""}, {agent.RiskMedium, ""}, {agent.RiskHigh, ""}}

var effects = []choice[agent.Class]{
	{agent.ClassRead, "changes nothing"},
	{agent.ClassIdempotent, "honours the idempotency key"},
	{agent.ClassReconcilable, "can be asked what happened"},
	{agent.ClassOnce, "never sent twice"},
}
