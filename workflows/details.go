package workflows

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
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
	if waits := t.waitsFor(); waits != "" {
		fmt.Fprintf(&b, "\nWaits for %s\n", waits)
	}
	for i, a := range t.st.Requests.Pending() {
		if i == shownAsks {
			fmt.Fprintf(&b, "\n… and %d more: `holdfast approvals --session %s`\n", t.st.Requests.Waiting()-i, t.in.Session)
			break
		}
		describe(&b, a)
	}
	if t.st.Reason != nil {
		fmt.Fprintf(&b, "\n%s: %s\n", t.st.Reason.Type, code(clip(t.st.Reason.Message)))
	}
	unresolved(&b, t.st.Ledger.Unresolved())
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

// shownAsks bounds the requests and the effects that are described one by one: the text travels in a URL.
const shownAsks = 5

// describe says what waits for an approval and what answers it. Arguments are shown by their beginning only; what is
// decided on is the digest.
func describe(b *strings.Builder, a agent.Approval) {
	fmt.Fprintf(b, "\n### Approval of %s\n\n", code(a.Tool))
	fmt.Fprintf(b, "- arguments (%d bytes): %s\n", len(a.Args), code(clip(approval.Visible(head(a.Args)))))
	if a.Terms.Resource != "" {
		fmt.Fprintf(b, "- resource: %s\n", code(clip(approval.Visible(head(a.Terms.Resource)))))
	}
	fmt.Fprintf(b, "- digest: `%s`\n- rule: %s\n- until: %s\n", a.Action, code(a.Verdict.Rule), a.ExpiresAt.UTC().Format("2006-01-02 15:04:05 MST"))
	fmt.Fprintf(b, "- answer: `holdfast approve '%s'` or the signal *approval*\n", a.ID)
}

// head cuts before making visible, which may make a text many times longer.
func head(s string) string { return s[:min(len(s), 4*clipRunes)] }

func unresolved(b *strings.Builder, effects []agent.Effect) {
	for i, e := range effects {
		if i == shownAsks {
			fmt.Fprintf(b, "\n… and %d more effects to look at\n", len(effects)-i)
			return
		}
		word := string(e.State)
		if e.Conflict != "" {
			word += ", and contradicted"
		}
		fmt.Fprintf(b, "\n**%s**: %s\n", word, code(e.Key))
	}
}

// publish shows what the session is doing now, and in search attributes whether somebody should look at it.
func (s *session) publish() {
	s.publishAttributes()
	var b strings.Builder
	fmt.Fprintf(&b, "agent %s, %d turns, %d messages waiting\n", code(s.in.Agent), s.st.Turns, len(s.st.Queue))
	if s.running != 0 {
		fmt.Fprintf(&b, "\n**running**: %s\n", code(agent.TurnID(s.scope.Session, s.running)))
	}
	if s.undoing != "" {
		fmt.Fprintf(&b, "\n**compensating**: %s\n", code(s.undoing))
	}
	if s.refused != "" {
		fmt.Fprintf(&b, "\n**not closed**: %s\n", s.refused)
	}
	unresolved(&b, s.st.Unresolved)
	workflow.SetCurrentDetails(s.root, b.String())
}

func (s *session) publishAttributes() {
	now, uncertain := attention(s.st.Unresolved), 0
	if s.change < authority && len(s.st.Unresolved) > 0 {
		now = agent.AttentionUncertain
	}
	var updates []temporal.SearchAttributeUpdate
	if now != s.st.Attention {
		updates = append(updates, setOr(now != "", attentionKey.ValueSet(now), attentionKey.ValueUnset()))
	}
	if s.change >= authority {
		for _, e := range s.st.Unresolved {
			if e.State == agent.StateUncertain {
				uncertain++
			}
		}
		if uncertain != s.st.Uncertain {
			updates = append(updates, setOr(uncertain > 0, uncertainKey.ValueSet(int64(uncertain)), uncertainKey.ValueUnset()))
		}
	}
	s.st.Attention, s.st.Uncertain = now, uncertain
	if len(updates) > 0 {
		if err := workflow.UpsertTypedSearchAttributes(s.root, updates...); err != nil {
			panic(err) // only a malformed attribute can fail, and that is ours
		}
	}
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

// cut shortens text that is kept to at most n bytes, which are valid UTF-8.
func cut(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}
