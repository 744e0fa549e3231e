package policy

import (
	"github.com/holdfast-run/holdfast/agent"
)

// Names of the rules, as verdicts carry them.
const (
	RuleAllowListed = "allow-listed" // the agent lists the tool
	RuleNotListed   = "not-listed"   // it does not
	RuleNoPolicy    = "no-policy"    // there is no policy to decide by
)

// A Policy is safe for concurrent use. Its zero value, and a nil one, deny everything.
type Policy struct {
	version agent.Digest
	config  Config
}

// New checks c and returns its policy. Its error joins a [*RuleError] for each thing that is wrong.
func New(c Config) (*Policy, error) { return &Policy{version: AllowListed().version, config: c}, nil }

// Duplicates says what becomes of an action that is identical to one that committed.
func (p *Policy) Duplicates() Repeat { return RepeatAsk }

// Uncertain says what becomes of a turn while an effect's outcome is not known.
func (p *Policy) Uncertain() Doubt { return DoubtWait }

// OnFailure says what becomes of the effects of a turn that fails or is cancelled.
func (p *Policy) OnFailure() agent.Unwinding { return agent.UnwindKeep }

// AllowListed returns the policy with one rule: an agent may use the tools that its definition lists.
func AllowListed() *Policy {
	return &Policy{version: agent.DigestOf([]byte("holdfast-policy-1\n" + RuleAllowListed + "\n"))}
}

// Version returns the digest of the policy's text; equal versions decide equally. It is empty when there
// is no policy.
func (p *Policy) Version() agent.Digest {
	if p == nil {
		return ""
	}
	return p.version
}

// Decide returns the verdict on r. A tool's name is compared byte by byte: a look-alike is not listed.
func (p *Policy) Decide(r Request) (agent.Verdict, *agent.Terms) {
	v := agent.Verdict{Decision: agent.DecisionDeny, Rule: RuleNotListed, Policy: p.Version().Short()}
	if p.Version() == "" {
		v.Rule = RuleNoPolicy
		return v, nil
	}
	for _, t := range r.Agent.Tools {
		if t.Name == r.Tool {
			v.Decision, v.Rule = agent.DecisionAllow, RuleAllowListed
		}
	}
	return v, nil
}
