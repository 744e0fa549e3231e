package worker

import (
	"encoding/json"
	"fmt"

	"github.com/gowebpki/jcs"

	"github.com/holdfast-run/holdfast/agent"
)

// modelRule stands in the digest, so that a version under another rule is another one.
const modelRule = "holdfast-model-1"

// version returns the digest of what decides how the model answers: which model the server is asked for, and what a
// request sets. Where the server is, its key, prices, time-outs and streaming are no part of it: a pinned session goes
// on when the operator moves the same model to another machine, renews a key or is patient for longer.
func (m Model) version() (agent.Digest, error) {
	b, err := json.Marshal(struct {
		Rule         string   `json:"rule"`
		Model        string   `json:"model"`
		Temperature  *float32 `json:"temperature,omitempty"` // 0 is not the server's default
		OutputTokens int      `json:"outputTokens,omitempty"`
	}{modelRule, m.Model, m.Temperature, m.Limits.OutputTokens})
	if err == nil {
		b, err = jcs.Transform(b)
	}
	if err != nil {
		return "", fmt.Errorf("its version has no JSON form: %w", err)
	}
	return agent.DigestOf(b), nil
}
