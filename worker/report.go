package worker

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/holdfast-run/holdfast/agent"
)

// A Report says what a configuration means on this machine. It holds no secret.
type Report struct {
	File   string `json:"file,omitempty"`
	Serial int64  `json:"serial"`
	// Digest is the configuration's, shortened.
	Digest string `json:"config"`
	Build  string `json:"build"`
	// Deployment is the worker deployment that the file names.
	Deployment string        `json:"deployment,omitempty"`
	Store      StoreReport   `json:"store"`
	Models     []ModelReport `json:"models"`
	Tools      []ToolReport  `json:"tools"`
	Agents     []AgentReport `json:"agents"`
	Policy     *PolicyReport `json:"policy,omitempty"` // none when the agents cannot be made
	Problems   []Problem     `json:"problems"`
	// Hints are not wrong, but should be known.
	Hints []string `json:"hints,omitempty"`
}

// newReport returns one with lists that are empty and not null, for whoever reads its JSON.
func newReport(file string) *Report {
	return &Report{
		File: file, Build: BuildID(),
		Models: []ModelReport{}, Tools: []ToolReport{}, Agents: []AgentReport{}, Problems: []Problem{},
	}
}

// Report is what a check says about a file that cannot be used: its problems and nothing else.
func (e *ConfigError) Report(file string) *Report {
	r := newReport(file)
	r.Problems = append(r.Problems, e.Problems...)
	return r
}

// StoreReport says whether the store can be relied on.
type StoreReport struct {
	URL    string `json:"url"`
	ID     string `json:"id,omitempty"`
	Proven bool   `json:"proven"` // written, read back, and a second create failed
	Sealed bool   `json:"sealed"`
}

// ModelReport says where a model is asked. Nothing is sent to it by a check.
type ModelReport struct {
	Name    string `json:"name"`
	Model   string `json:"model"`
	BaseURL string `json:"baseURL"`
	Key     string `json:"key,omitempty"` // the reference
}

// ToolReport says what would be registered for a tool.
type ToolReport struct {
	Name   string      `json:"name"` // as the model calls it
	Source string      `json:"source"`
	Listed string      `json:"listed,omitempty"` // as an agent's list would name it, where that differs
	Effect agent.Class `json:"effect,omitempty"`
	Risk   agent.Risk  `json:"risk,omitempty"`
	// Undo is "undone by" the compensating tool, "irreversible", or empty.
	Undo     string   `json:"undo,omitempty"`
	Declared bool     `json:"declared"`          // the file or the program says the effect
	Suggest  string   `json:"suggest,omitempty"` // what to declare
	Version  string   `json:"version,omitempty"` // of the declaration, shortened
	Agents   []string `json:"agents,omitempty"`
	Problem  string   `json:"problem,omitempty"` // why it cannot be used
}

// AgentReport says what an agent would be.
type AgentReport struct {
	Name    string        `json:"name"`
	Model   string        `json:"model"`
	Upgrade agent.Upgrade `json:"upgrade"` // what becomes of its sessions when it is defined anew
	Tools   []string      `json:"tools,omitempty"`
	Limits  agent.Limits  `json:"limits"`
}

// OK says whether a worker would start with this configuration.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// WriteText prints the report for a person.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "configuration  %s, serial %d, digest %s\n", orDash(r.File), r.Serial, r.Digest)
	if r.Deployment != "" {
		fmt.Fprintf(&b, "deployment     %s, build %s\n", r.Deployment, r.Build)
	}
	fmt.Fprintf(&b, "store          %s%s\n", r.Store.URL, r.Store.text())
	table(&b, "models", func(t io.Writer) {
		for _, m := range r.Models {
			fmt.Fprintf(t, "  %s\t%s\t%s\tkey %s\n", m.Name, m.Model, m.BaseURL, orDash(m.Key))
		}
	})
	table(&b, "tools", func(t io.Writer) {
		for _, m := range r.Tools {
			fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\n", m.Name, m.Source, m.effect(), orDash(m.Version), m.remark())
		}
	})
	table(&b, "agents", func(t io.Writer) {
		for _, a := range r.Agents {
			fmt.Fprintf(t, "  %s\tmodel %s\tupgrade %s\ttools %s\n", a.Name, a.Model, a.Upgrade, orDash(strings.Join(a.Tools, ", ")))
		}
	})
	if r.Policy != nil {
		r.Policy.write(&b)
	}
	conclude(&b, r.Hints, r.Problems, "a worker can start with this configuration")
	_, err := io.WriteString(w, b.String())
	return err
}

// conclude ends a check: what should be known, what is wrong, or that nothing is.
func conclude(b *strings.Builder, hints []string, problems []Problem, ok string) {
	for _, h := range hints {
		fmt.Fprintf(b, "hint: %s\n", h)
	}
	for _, p := range problems {
		fmt.Fprintf(b, "problem: %s\n", p)
	}
	if len(problems) > 0 {
		fmt.Fprintf(b, "not ok: %d to mend\n", len(problems))
		return
	}
	fmt.Fprintf(b, "ok: %s\n", ok)
}

func table(b *strings.Builder, title string, rows func(io.Writer)) {
	fmt.Fprintf(b, "%s\n", title)
	t := tabwriter.NewWriter(b, 0, 4, 2, ' ', 0)
	rows(t)
	_ = t.Flush() // a strings.Builder takes everything
}

func (s StoreReport) text() string {
	if !s.Proven {
		return ", not usable"
	}
	sealed := "not sealed"
	if s.Sealed {
		sealed = "sealed"
	}
	return fmt.Sprintf(", identity %s, second create refused, %s", s.ID, sealed)
}

func (t ToolReport) effect() string {
	out := string(t.Effect)
	switch {
	case t.Effect == "":
		return "-"
	case !t.Declared:
		out += " (not declared)"
	}
	if t.Risk == agent.RiskHigh {
		out += ", high risk"
	}
	return out
}

func (t ToolReport) remark() string {
	out := "listed by no agent"
	if len(t.Agents) > 0 {
		out = "for " + strings.Join(t.Agents, ", ")
	}
	if t.Problem != "" {
		out = "cannot be used: " + t.Problem
	}
	if t.Undo != "" {
		out += "; " + t.Undo
	}
	if t.Suggest != "" {
		out += "; suggested: " + t.Suggest
	}
	return out
}

func orDash(s string) string { return cmp.Or(s, "-") }
