package worker

import (
	"errors"
	"reflect"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
)

// defaultPolicy holds for a file without one: reads are allowed, effects ask.
func defaultPolicy() policy.Config {
	self := true
	return policy.Config{
		Posture: policy.PostureAuto, Approval: policy.Asking{Quorum: 1, Expires: policy.DefaultExpires},
		SelfApproval: &self, Duplicates: policy.RepeatAsk, Uncertain: policy.DoubtWait, OnFailure: agent.UnwindKeep,
	}
}

// policyConfig returns the operator's policy with the agents' layers.
func (c *Config) policyConfig() policy.Config {
	p := c.Policy
	p.Agents = map[string]policy.Layer{}
	for name, a := range c.Agents {
		if !reflect.ValueOf(a.Policy).IsZero() {
			p.Agents[name] = a.Policy
		}
	}
	return p
}

// compilePolicy makes the policy and reports what is wrong with it at its place in the file. It returns nil after
// a problem.
func (c *Config) compilePolicy(d *decoder) *policy.Policy {
	if d.noPolicy {
		return nil
	}
	p, err := policy.New(c.policyConfig())
	if err == nil {
		return p
	}
	for _, one := range unjoin(err) {
		var e *policy.RuleError
		if !errors.As(one, &e) {
			d.fail("policy", "%v", one)
			continue
		}
		d.failRule(e)
	}
	return nil
}

func (d *decoder) failRule(e *policy.RuleError) {
	path, text := policyPath(e.Path), e.Text
	if e.Rule != "" {
		text = "rule \"" + clip(e.Rule) + "\": " + text
	}
	if e.Line < 1 {
		d.fail(path, "%s", text)
		return
	}
	d.add(d.inside(path, e.Line, e.Column), "%s", text)
}

// policyPath turns a place in a policy into one in the file.
func policyPath(path string) string {
	rest, ok := strings.CutPrefix(path, "agents/")
	if !ok {
		return "policy/" + path
	}
	name, inside, _ := strings.Cut(rest, "/")
	return "agents/" + name + "/policy/" + inside
}

// unjoin returns the errors that errors.Join put together.
func unjoin(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, unjoin(e)...)
	}
	return all
}
