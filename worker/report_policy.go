package worker

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/policy"
)

// A PolicyReport says what a configuration's policy is.
type PolicyReport struct {
	Version   string           `json:"version"` // as verdicts carry it
	Posture   policy.Posture   `json:"posture"`
	Rules     []RuleReport     `json:"rules"` // the operator's, then the agents'
	Agents    []LayerReport    `json:"agents,omitempty"`
	Approval  AskingReport     `json:"approval"`
	Approvers []ApproverReport `json:"approvers"`
	// SelfApproval lets whoever sent a turn's messages decide.
	SelfApproval bool            `json:"selfApproval"`
	Unsigned     string          `json:"unsigned"` // "accept" or "refuse"
	Duplicates   policy.Repeat   `json:"duplicates"`
	Uncertain    policy.Doubt    `json:"uncertain"`
	OnFailure    agent.Unwinding `json:"onFailure"`
	Upgrade      agent.Upgrade   `json:"upgrade"`          // for agents that do not say it
	Settle       []string        `json:"settle,omitempty"` // who may; empty is anybody
	Compensate   []string        `json:"compensate,omitempty"`
	Fork         []string        `json:"fork,omitempty"`
	Verdicts     []VerdictReport `json:"verdicts"`
}

// A LayerReport is the posture of an agent that has one of its own.
type LayerReport struct {
	Agent   string         `json:"agent"`
	Posture policy.Posture `json:"posture"`
}

// A RuleReport is one rule.
type RuleReport struct {
	Name string         `json:"rule"` // as verdicts have it: an agent's begins with its name
	When string         `json:"when,omitempty"`
	Then agent.Decision `json:"then"`
	// Approval is what its ask takes.
	Approval *AskingReport `json:"approval,omitempty"`
}

// An AskingReport is what an approval takes.
type AskingReport struct {
	By            []string       `json:"by,omitempty"` // empty is anybody
	Quorum        int            `json:"quorum"`
	Expires       agent.Duration `json:"expires"`
	EscalateAfter agent.Duration `json:"escalateAfter,omitempty"`
	EscalateTo    []string       `json:"escalateTo,omitempty"`
}

// An ApproverReport is a person.
type ApproverReport struct {
	Name   string      `json:"name"`
	Groups []string    `json:"groups,omitempty"`
	Keys   []KeyReport `json:"keys"`
}

// A KeyReport is a public key. State is "", "revoked" or "expired".
type KeyReport struct {
	Fingerprint string    `json:"fingerprint"`
	Type        string    `json:"type"`
	Comment     string    `json:"comment,omitempty"`
	Expires     time.Time `json:"expires,omitzero"`
	State       string    `json:"state,omitempty"`
}

// A VerdictReport says what may become of an agent's calls of a tool, by their arguments.
type VerdictReport struct {
	Agent string            `json:"agent"`
	Tool  string            `json:"tool"`
	Can   []policy.Possible `json:"can"`
}

func (v VerdictReport) may(d agent.Decision) bool {
	for _, one := range v.Can {
		if one.Decision == d {
			return true
		}
	}
	return false
}

func (p *PolicyReport) write(b *strings.Builder) {
	fmt.Fprintf(b, "policy         version %s, posture %s\n", p.Version, p.Posture)
	for _, l := range p.Agents {
		fmt.Fprintf(b, "  posture      %s for agent %s\n", l.Posture, l.Agent)
	}
	self := "yes"
	if !p.SelfApproval {
		self = "no"
	}
	fmt.Fprintf(b, "  approval     %s\n", p.Approval)
	fmt.Fprintf(b, "  otherwise    self approval %s, unsigned %s, duplicates %s, uncertain %s, on failure %s, upgrade %s\n",
		self, p.Unsigned, p.Duplicates, p.Uncertain, p.OnFailure, p.Upgrade)
	fmt.Fprintf(b, "  rights       settle %s, compensate %s, fork %s\n", anybody(p.Settle), anybody(p.Compensate), anybody(p.Fork))
	section(b, "rules", len(p.Rules), func(t io.Writer) {
		for _, r := range p.Rules {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", r.Name, r.Then, r.text())
		}
	})
	section(b, "approvers", len(p.Approvers), func(t io.Writer) {
		for _, a := range p.Approvers {
			a.write(t)
		}
	})
	section(b, "verdicts", len(p.Verdicts), func(t io.Writer) {
		for _, v := range p.Verdicts {
			fmt.Fprintf(t, "  %s\t%s\t%s\n", v.Agent, v.Tool, v.text())
		}
	})
}

func section(b *strings.Builder, title string, rows int, write func(io.Writer)) {
	if rows > 0 {
		table(b, title, write)
	}
}

func (r RuleReport) text() string {
	out := "always"
	if r.When != "" {
		out = "when " + approval.Visible(strings.Join(strings.Fields(r.When), " "))
	}
	if r.Approval != nil {
		out += "; " + r.Approval.String()
	}
	return out
}

// String returns "1 of alice, bob, within 8h, after 2h also carol".
func (a AskingReport) String() string {
	out := fmt.Sprintf("%d of %s, within %s", a.Quorum, anybody(a.By), plain(a.Expires))
	if a.EscalateAfter > 0 {
		out += fmt.Sprintf(", after %s also %s", plain(a.EscalateAfter), strings.Join(a.EscalateTo, ", "))
	}
	return out
}

func (a ApproverReport) write(t io.Writer) {
	name, groups := approval.Visible(a.Name), approval.Visible(strings.Join(a.Groups, ", "))
	if len(a.Keys) == 0 {
		fmt.Fprintf(t, "  %s\t%s\tno key\t\n", name, orDash(groups))
	}
	for _, k := range a.Keys {
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\n", name, orDash(groups), k.Fingerprint, k.text())
	}
}

func (k KeyReport) text() string {
	parts := []string{k.Type}
	if k.Comment != "" {
		parts = append(parts, approval.Visible(clip(k.Comment)))
	}
	if !k.Expires.IsZero() {
		parts = append(parts, "until "+k.Expires.Format(time.RFC3339))
	}
	if k.State != "" {
		parts = append(parts, strings.ToUpper(k.State))
	}
	return strings.Join(parts, ", ")
}

func (v VerdictReport) text() string {
	var out []string
	for _, one := range v.Can {
		out = append(out, fmt.Sprintf("%s (%s)", one.Decision, one.Rule))
	}
	return strings.Join(out, ", ")
}

func anybody(names []string) string {
	if len(names) == 0 {
		return "anybody"
	}
	return strings.Join(names, ", ")
}

// plain writes a duration without the zeros at its end.
func plain(d agent.Duration) string {
	s := d.String()
	for _, zero := range []string{"0s", "0m"} {
		if before, ok := strings.CutSuffix(s, zero); ok && strings.HasSuffix(before, map[string]string{"0s": "m", "0m": "h"}[zero]) {
			s = before
		}
	}
	return s
}
