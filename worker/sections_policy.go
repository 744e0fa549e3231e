package worker

import (
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval/signature"
	"github.com/holdfast-run/holdfast/policy"
)

var (
	postures = []choice[policy.Posture]{
		{policy.PosturePlan, "reads only"}, {policy.PostureAsk, "every effect asks"}, {policy.PostureAuto, "the rules decide"},
	}
	decisions = []choice[agent.Decision]{
		{agent.DecisionAllow, ""}, {agent.DecisionAsk, "a person decides"}, {agent.DecisionDeny, ""},
	}
	repeats = []choice[policy.Repeat]{{policy.RepeatAsk, ""}, {policy.RepeatAllow, ""}, {policy.RepeatDeny, ""}}
	doubts  = []choice[policy.Doubt]{
		{policy.DoubtWait, "for a person who settles it"}, {policy.DoubtTell, "the model"},
	}
	unwindings = []choice[agent.Unwinding]{
		{agent.UnwindKeep, "leave effects as they are"},
		{agent.UnwindCompensate, "undo them"},
		{agent.UnwindAsk, "a person decides on each"},
	}
	upgrades = []choice[agent.Upgrade]{
		{agent.UpgradeFollow, "the new definition at the next turn"},
		{agent.UpgradePin, "the old one"},
		{agent.UpgradeAsk, "people decide at the next turn"},
	}
	signings = []choice[signing]{
		{"refuse", ""}, {"accept", "one person on one machine"},
	}
)

type signing string

// policy reads the operator's policy. What it means as a whole is checked by package policy.
func (d *decoder) policy(v value, config *Config) {
	defer d.judgePolicy(len(d.problems))
	c := &config.Policy
	var unsigned signing
	d.object(v, fields{
		"posture":       choiceInto(d, &c.Posture, postures),
		"rules":         d.rulesInto(&c.Rules),
		"approval":      func(v value) { d.asking(v, &c.Approval) },
		"approvers":     func(v value) { c.Approvers = d.approvers(v) },
		"self_approval": d.boolInto(c.SelfApproval),
		"unsigned":      choiceInto(d, &unsigned, signings),
		"duplicates":    choiceInto(d, &c.Duplicates, repeats),
		"uncertain":     choiceInto(d, &c.Uncertain, doubts),
		"on_failure":    choiceInto(d, &c.OnFailure, unwindings),
		"upgrade":       choiceInto(d, &config.Upgrade, upgrades),
		"rights": func(v value) {
			d.object(v, fields{
				"settle": d.peopleInto(&c.Rights.Settle), "compensate": d.peopleInto(&c.Rights.Compensate),
				"fork": d.peopleInto(&c.Rights.Fork),
			})
		},
	})
	c.AcceptUnsigned = unsigned == "accept"
}

// layer reads an agent's own part of the policy.
func (d *decoder) layer(v value, l *policy.Layer) {
	defer d.judgePolicy(len(d.problems))
	d.object(v, fields{"posture": choiceInto(d, &l.Posture, postures), "rules": d.rulesInto(&l.Rules)})
}

// judgePolicy notes whether a part of the policy could be read: what could not is not there, or not at its
// place, and package policy would complain about something that the file does not say.
func (d *decoder) judgePolicy(before int) { d.noPolicy = d.noPolicy || len(d.problems) > before }

func (d *decoder) rulesInto(to *[]policy.Rule) func(value) {
	return func(v value) {
		d.list(v, func(_ int, v value) {
			var r policy.Rule
			d.object(v, fields{
				"name":     d.textInto(&r.Name),
				"when":     d.textInto(&r.When),
				"then":     choiceInto(d, &r.Then, decisions),
				"approval": func(v value) { d.asking(v, &r.Approval) },
			})
			*to = append(*to, r)
		})
	}
}

func (d *decoder) asking(v value, a *policy.Asking) {
	d.object(v, fields{
		"by":      d.peopleInto(&a.By),
		"quorum":  d.fromOneInto(&a.Quorum),
		"expires": d.fromSecondInto(&a.Expires),
		"escalate": func(v value) {
			a.Escalate = &policy.Escalation{}
			d.object(v, fields{"after": d.fromSecondInto(&a.Escalate.After), "to": d.peopleInto(&a.Escalate.To)})
		},
	})
}

// peopleInto reads names of approvers or groups. An empty list would read as nobody and mean anybody.
func (d *decoder) peopleInto(to *[]string) func(value) {
	return func(v value) {
		before := len(d.problems)
		d.textsInto(to)(v)
		if _, list := v.node.(*ast.SequenceNode); list && len(*to) == 0 && len(d.problems) == before {
			d.fail(v.path, "%s names nobody; name approvers or groups, or leave it out", v.shown())
		}
	}
}

// fromOneInto reads a whole number whose zero would mean that nothing was said.
func (d *decoder) fromOneInto(to *int) func(value) {
	return func(v value) {
		before := len(d.problems)
		d.intInto(to)(v)
		if _, null := v.node.(*ast.NullNode); !null && *to == 0 && len(d.problems) == before {
			d.fail(v.path, "%s must be at least 1; leave it out for the default", v.shown())
		}
	}
}

// fromSecondInto reads a duration in which a person has to do something.
func (d *decoder) fromSecondInto(to *time.Duration) func(value) {
	return func(v value) {
		before := len(d.problems)
		d.durationInto(to)(v)
		if _, null := v.node.(*ast.NullNode); !null && len(d.problems) == before {
			d.aSecond(v.path, *to)
		}
	}
}

func (d *decoder) approvers(v value) map[string]policy.Approver {
	out := map[string]policy.Approver{}
	d.entries(v, func(name string, _ position, v value) {
		var a policy.Approver
		d.object(v, fields{
			"groups": d.textsInto(&a.Groups),
			"keys": func(v value) {
				d.list(v, func(_ int, v value) { a.Keys = append(a.Keys, d.approverKey(v)) })
			},
		})
		out[name] = a
	})
	return out
}

// approverKey reads a public key: its line alone, or with when it stops to count.
func (d *decoder) approverKey(v value) policy.Key {
	var k policy.Key
	switch v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		d.object(v, fields{"key": d.publicKeyInto(&k), "expires": d.momentInto(&k.Expires), "revoked": d.boolInto(&k.Revoked)})
		if _, given := d.at[v.path+"/key"]; !given {
			d.fail(v.path, "%s has no key; %s", v.shown(), publicKeyHint)
		}
	default:
		d.publicKeyInto(&k)(v)
	}
	return k
}

const publicKeyHint = `write a line as ~/.ssh/id_ed25519.pub has it: "ssh-ed25519 AAAA... alice@example.com"`

func (d *decoder) publicKeyInto(k *policy.Key) func(value) {
	return func(v value) {
		s, ok := d.text(v)
		if !ok {
			return
		}
		var err error
		if k.Key, k.Comment, err = signature.ParseKey(s); err != nil {
			d.fail(v.path, "%s is no SSH public key (%v); %s", v.shown(), err, publicKeyHint)
		}
	}
}

// momentInto reads a time: a date is the beginning of that day in UTC.
func (d *decoder) momentInto(to *time.Time) func(value) {
	return func(v value) {
		s, ok := d.text(v)
		if !ok {
			return
		}
		for _, form := range []string{time.DateOnly, time.RFC3339} {
			if t, err := time.Parse(form, s); err == nil {
				*to = t.UTC()
				return
			}
		}
		d.fail(v.path, "%s is %q; want a date such as 2027-01-31, or a time such as 2027-01-31T18:00:00Z", v.shown(), clip(s))
	}
}
