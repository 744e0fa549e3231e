package policy

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// versionRule stands in the digest, so that a policy under other rules of evaluation has another version.
const versionRule = "holdfast-policy-3"

// A Policy is safe for concurrent use and never changes. Its zero value, and a nil one, deny everything.
type Policy struct {
	version        agent.Digest
	posture        Posture
	rules          []rule
	agents         map[string]layer
	approval       Asking // the default, complete
	people         map[string]Approver
	selfApproval   bool
	acceptUnsigned bool
	duplicates     Repeat
	uncertain      Doubt
	onFailure      agent.Unwinding
	rights         Rights // names resolved
}

// A layer is an agent's Layer that was checked.
type layer struct {
	posture Posture
	rules   []rule
}

// New checks c and returns its policy. Its error joins a [*RuleError] for each thing that is wrong, also for what
// would only pretend to protect, such as a list of approvers who have no keys.
func New(c Config) (*Policy, error) {
	k := &checker{c: &c}
	env, err := newEnv()
	if err != nil {
		return nil, fmt.Errorf("policy: the language of conditions: %w", err)
	}
	k.env = env
	k.people()
	p := &Policy{
		posture: cmp.Or(c.Posture, PostureAuto), people: c.Approvers, agents: map[string]layer{},
		selfApproval: c.SelfApproval == nil || *c.SelfApproval, acceptUnsigned: c.AcceptUnsigned,
		duplicates: cmp.Or(c.Duplicates, RepeatAsk), uncertain: cmp.Or(c.Uncertain, DoubtWait),
		onFailure: cmp.Or(c.OnFailure, agent.UnwindKeep),
	}
	k.choices(p)
	before := len(k.wrong)
	p.approval = k.asking("approval", "", c.Approval).Over(Asking{Quorum: 1, Expires: DefaultExpires})
	if len(k.wrong) == before {
		k.possible("approval", "", p.approval, p)
	}
	p.rules = k.rules("rules", "", c.Rules, p)
	for _, name := range slices.Sorted(maps.Keys(c.Agents)) {
		path := "agents/" + name
		k.oneOf(path+"/posture", c.Agents[name].Posture, PosturePlan, PostureAsk, PostureAuto, "")
		p.agents[name] = layer{
			posture: c.Agents[name].Posture, rules: k.rules(path+"/rules", name+"/", c.Agents[name].Rules, p),
		}
	}
	p.rights = Rights{
		Settle:     k.right("rights/settle", c.Rights.Settle),
		Compensate: k.right("rights/compensate", c.Rights.Compensate),
		Fork:       k.right("rights/fork", c.Rights.Fork),
	}
	if len(k.wrong) > 0 {
		return nil, errors.Join(k.wrong...)
	}
	p.version = p.digest()
	return p, nil
}

// Version returns the digest of all that decides; equal versions decide equally. It is empty when there is no
// policy.
func (p *Policy) Version() agent.Digest {
	if p == nil {
		return ""
	}
	return p.version
}

// Duplicates says what becomes of an action that is identical to an effect which committed before in the session.
func (p *Policy) Duplicates() Repeat {
	if p == nil {
		return RepeatAsk
	}
	return cmp.Or(p.duplicates, RepeatAsk)
}

// Uncertain says what becomes of a turn while the outcome of an effect is not known.
func (p *Policy) Uncertain() Doubt {
	if p == nil {
		return DoubtWait
	}
	return cmp.Or(p.uncertain, DoubtWait)
}

// OnFailure says what becomes of the effects of a turn that fails or is cancelled.
func (p *Policy) OnFailure() agent.Unwinding {
	if p == nil {
		return agent.UnwindKeep
	}
	return cmp.Or(p.onFailure, agent.UnwindKeep)
}

// digest covers every rule, name, key and default, and no comment.
func (p *Policy) digest() agent.Digest {
	type rules []any
	list := func(rs []rule) rules {
		var out rules
		for _, r := range rs {
			out = append(out, []any{r.name, r.when, r.then, r.asking})
		}
		return out
	}
	agents, people := map[string]any{}, map[string]any{}
	for name, l := range p.agents {
		agents[name] = []any{l.posture, list(l.rules)}
	}
	for name, a := range p.people {
		var keys []any
		for _, k := range a.Keys {
			at := ""
			if !k.Expires.IsZero() {
				at = k.Expires.UTC().Format(time.RFC3339Nano)
			}
			keys = append(keys, []any{base64.StdEncoding.EncodeToString(k.Key.Marshal()), at, k.Revoked})
		}
		people[name] = []any{a.Groups, keys}
	}
	b, err := json.Marshal([]any{
		versionRule, p.posture, list(p.rules), agents, p.approval, people, p.selfApproval, p.acceptUnsigned,
		p.duplicates, p.uncertain, p.onFailure, p.rights,
	})
	if err != nil {
		panic(fmt.Sprintf("policy: no JSON of a policy: %v", err)) // it holds texts, numbers and lists only
	}
	return agent.DigestOf(b)
}
