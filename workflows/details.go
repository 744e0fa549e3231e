package workflows

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// Current details are Markdown that the Web UI fetches by a query: they land in no history, hold no message
// text, and stay short because the UI sends them through a URL.
const (
	recentLines = 10
	clipRunes   = 200
)

// note keeps a line about a call for the current details.
func (t *turn) note(c agent.Call, r agent.ToolResult) {
	what := c.Summary
	if what == "" {
		what = c.Tool
	}
	t.recent = append(t.recent, fmt.Sprintf("step %d: %s: %s", t.st.Step, code(what), r.State))
	if n := len(t.recent); n > recentLines {
		t.recent = t.recent[n-recentLines:]
	}
}

// show publishes what the turn is doing now.
func (t *turn) show() {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s**, step %d, agent %s\n", t.status, t.st.Step, code(t.in.Agent))
	if t.waiting != "" {
		fmt.Fprintf(&b, "\nWaits for %s\n", t.waiting)
	}
	if t.st.Reason != nil {
		fmt.Fprintf(&b, "\n%s: %s\n", t.st.Reason.Type, code(clip(t.st.Reason.Message)))
	}
	for _, e := range t.st.Ledger.Unresolved() {
		fmt.Fprintf(&b, "\n**uncertain**: %s\n", code(e.Key))
	}
	if len(t.recent) > 0 {
		b.WriteString("\n")
		for _, line := range t.recent {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	u := t.st.Usage
	fmt.Fprintf(&b, "\n%d tokens in (%d cached), %d out, %d model calls\n", u.Input, u.Cached, u.Output, u.Calls)
	workflow.SetCurrentDetails(t.root, b.String())
}

// publish shows what the session is doing now, and in a search attribute whether somebody should look at it.
func (s *session) publish() {
	attention := ""
	if len(s.st.Unresolved) > 0 {
		attention = attentionUncertain
	}
	if attention != s.st.Attention {
		s.st.Attention = attention
		update := attentionKey.ValueUnset()
		if attention != "" {
			update = attentionKey.ValueSet(attention)
		}
		if err := workflow.UpsertTypedSearchAttributes(s.root, update); err != nil {
			panic(err) // only a malformed attribute can fail, and that is ours
		}
	}

	var b strings.Builder
	fmt.Fprintf(&b, "agent %s, %d turns, %d messages waiting\n", code(s.in.Agent), s.st.Turns, len(s.st.Queue))
	if s.running != 0 {
		fmt.Fprintf(&b, "\n**running**: %s\n", code(agent.TurnID(s.scope.Session, s.running)))
	}
	if s.refused != "" {
		fmt.Fprintf(&b, "\n**not closed**: %s\n", s.refused)
	}
	for _, e := range s.st.Unresolved {
		fmt.Fprintf(&b, "\n**%s**: %s\n", e.State, code(e.Key))
	}
	workflow.SetCurrentDetails(s.root, b.String())
}

// code sets text that came from outside as Markdown code, so that it cannot pretend to be anything else.
func code(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '`' || r < ' ' {
			return ' '
		}
		return r
	}, s)
	return "`" + s + "`"
}

// clip shortens text for a line.
func clip(s string) string {
	if utf8.RuneCountInString(s) <= clipRunes {
		return s
	}
	return string([]rune(s)[:clipRunes]) + "…"
}
