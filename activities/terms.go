package activities

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
)

// observeFor bounds how long the target of an action may take to be looked at before a person is asked.
const observeFor = 10 * time.Second

// request is what policy gets to decide on.
func (d *desk) request(spec tool.Spec, args string) policy.Request {
	return policy.Request{
		Agent: d.def, Tool: spec.Name, Class: spec.Class, Risk: spec.Risk, Args: args,
		Resource: resource(spec.Resource, args), Scope: d.scope, Senders: d.senders,
	}
}

// versioned returns terms that say by which declaration of the tool the action's digest was taken. Policy's own stay
// as they are.
func versioned(t *agent.Terms, spec tool.Spec) *agent.Terms {
	if t == nil {
		return nil
	}
	out := *t
	out.Version = spec.Version
	return &out
}

// listing returns def with a tool among those that it lists: a compensating tool is named by the declaration of the
// effect's own tool, and need not be one that the model is offered.
func listing(def agent.Definition, spec tool.Spec) agent.Definition {
	def.Tools = append(def.Tools[:len(def.Tools):len(def.Tools)], agent.ToolRef{Name: spec.Name, Version: spec.Version})
	return def
}

// isUndo says whether a key is that of a compensation.
func isUndo(key string) bool {
	k, _ := agent.ParseKey(key)
	return k.Undo > 0
}

// observe asks a tool what state the target of a call is in; nil if the tool cannot say. That it could not find out
// is told too: a person is asked all the same. It takes no longer than most, whatever the tool does.
func (s *Snapshot) observe(ctx context.Context, t tool.Tool, c tool.Call, most time.Duration) *agent.Observation {
	o, ok := tool.AsObserver(t)
	if !ok {
		return nil
	}
	res, err := within(ctx, min(most, t.Spec().Timeout), 0, func(ctx context.Context) (tool.Result, error) {
		return o.Observe(ctx, c)
	})
	seen := &agent.Observation{At: now()}
	if err != nil {
		seen.Trouble = cut(s.Mask.String(err.Error()), maxWords)
		return seen
	}
	data := s.Mask.Bytes(res.Data)
	seen.Digest = agent.DigestOf(data)
	if textual(res.Type) && utf8.Valid(data) {
		seen.Text = cut(string(data), agent.MaxObserved)
	} else {
		seen.Text = describe(agent.Body{Digest: seen.Digest, Size: int64(len(data)), Type: res.Type})
	}
	return seen
}
