package openai

import (
	"encoding/json"
	"math"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// finish returns what a turn may do with the answer. Calls count whatever the reason says, unless it says
// that the model was stopped before it had finished them.
func finish(reason string, a Answer) (agent.Finish, *Error) {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "model_length", "max_output_tokens":
		return agent.FinishLength, nil
	case "content_filter", "safety", "recitation", "blocklist", "prohibited_content", "sensitive":
		return agent.FinishFilter, nil
	case "error", "abort", "aborted", "cancelled", "insufficient_system_resource":
		return "", lost(agent.ErrOverloaded, "the server broke the answer off: %s", reason)
	}
	switch {
	case len(a.Calls) > 0:
		return agent.FinishCalls, nil
	case a.Refusal != "":
		return agent.FinishRefusal, nil
	case a.Text == "" && anyOf(strings.ToLower(reason), "tool_call", "function_call", "tool_use"):
		return "", badAnswer("the answer says %q and has no calls", reason)
	}
	return agent.FinishStop, nil
}

// A bill is a usage object in the members that are used.
type bill struct {
	Prompt     json.Number `json:"prompt_tokens"`
	Completion json.Number `json:"completion_tokens"`
	InDetails  struct {
		Cached json.Number `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	OutDetails struct {
		Reasoning json.Number `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	CacheHit json.Number `json:"prompt_cache_hit_tokens"` // another provider's word for the cached ones
}

// count takes a usage object. Servers that send one with every chunk count up, so the last one holds. One
// that cannot be read is no reason to throw a paid answer away.
func (a *assembler) count(raw json.RawMessage) {
	var b bill
	if !isSet(raw) || json.Unmarshal(raw, &b) != nil {
		return
	}
	in, out := tokens(b.Prompt), tokens(b.Completion)
	a.usage = agent.Usage{
		Input: in, Cached: min(in, max(tokens(b.InDetails.Cached), tokens(b.CacheHit))),
		Output: out, Reasoning: min(out, tokens(b.OutDetails.Reasoning)),
	}
}

// tokens returns a count between 0 and what an int32 holds: no answer has more.
func tokens(n json.Number) int64 {
	f, err := n.Float64()
	if err != nil || math.IsNaN(f) {
		return 0
	}
	return int64(min(max(f, 0), math.MaxInt32))
}
