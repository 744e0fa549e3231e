package approval

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/gowebpki/jcs"

	"github.com/holdfast-run/holdfast/agent"
)

// Rule versions of the digests. They stand in the digests: a changed rule gives every action another
// digest, so that an approval under the old rule cannot be taken for one under the new.
const (
	actionRule = "holdfast-action-1"
	intentRule = "holdfast-intent-1"
)

// An Action is a tool, its exact arguments, the resource it touches, and where it was asked for.
type Action struct {
	Tool    string
	Version agent.Digest // of the tool's whole declaration
	Args    string       // canonical
	// Resource is what the action touches, "" if the tool names none.
	Resource string
	Place    agent.Place
}

// Digest returns the SHA-256 of the action's RFC 8785 form. The arguments go in as text, because the
// envelope's own number rule is a float64.
func (a Action) Digest() agent.Digest {
	return digest(map[string]any{
		"rule": actionRule, "tool": text(a.Tool), "version": text(string(a.Version)),
		"args": text(a.Args), "resource": text(a.Resource),
		"turn": a.Place.Turn, "step": a.Place.Step, "call": a.Place.Call,
	})
}

// IntentDigest returns a digest that is equal for calls that mean the same: the same tool and resource,
// and identity arguments of the same value, where numbers are equal by value (1, 1.0 and 10e-1). No
// identity means all arguments. It fails on arguments that are not an object as [Canonical] returns it.
func IntentDigest(tool, args string, identity []string, resource string) (agent.Digest, error) {
	n, err := parse([]byte(args))
	if err != nil {
		return "", fmt.Errorf("intent of %q: %w", tool, err)
	}
	if len(identity) > 0 {
		n = n.only(identity)
	}
	n.numbersByValue()
	return digest(map[string]any{
		"rule": intentRule, "tool": text(tool), "resource": text(resource), "args": string(n.append(nil)),
	}), nil
}

func (n *node) only(names []string) node {
	out := node{kind: '{'}
	for i, key := range n.keys {
		if slices.Contains(names, key) {
			out.keys, out.values = append(out.keys, key), append(out.values, n.values[i])
		}
	}
	return out
}

func (n *node) numbersByValue() {
	if n.kind == '0' {
		n.text = NumberValue(n.text)
	}
	for i := range n.values {
		n.values[i].numbersByValue()
	}
}

// text keeps texts that are not UTF-8 apart: encoding/json would replace their bad bytes.
func text(s string) any {
	if utf8.ValidString(s) {
		return s
	}
	return map[string]string{"hex": hex.EncodeToString([]byte(s))}
}

func digest(fields map[string]any) agent.Digest { return agent.DigestOf(envelope(fields)) }

// envelope returns the RFC 8785 form. It cannot fail: an envelope holds valid texts and small integers only.
func envelope(fields map[string]any) []byte {
	b, err := json.Marshal(fields)
	if err == nil {
		b, err = jcs.Transform(b)
	}
	if err != nil {
		panic(fmt.Sprintf("approval: envelope without canonical form: %v", err))
	}
	return b
}
