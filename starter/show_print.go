package starter

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

func (a *App) printTurn(s *shownTurn) {
	fmt.Fprintf(a.Out, "%s turn %d: %s\n", a.paint(a.Out, bold, s.Session), s.Turn, a.paint(a.Out, bold, line(string(s.Status), 32)))
	if s.Undo != nil {
		a.field("undoes", fmt.Sprintf("turn %d, ordered%s%s", s.Undo.Turn, by(s.Undo.Command.Approver), because(s.Undo.Command.Reason)))
	}
	a.field("agent", s.Agent)
	a.field("tenant", s.Tenant)
	if s.Message != nil {
		a.field("message", s.Message.Text)
		a.field("from", s.Message.From)
	}
	a.field("waits for", s.Waiting)
	a.field("trouble", s.Trouble)
	if s.Reason != nil {
		a.field("reason", s.Reason.Type+": "+s.Reason.Message)
	}
	if !s.Started.IsZero() {
		a.field("started", s.Started.Local().Format(time.DateTime))
	}
	if !s.Ended.IsZero() {
		a.field("took", s.Ended.Sub(s.Started).Round(time.Millisecond).String())
	}
	a.field("usage", usageText(s.Usage))
	if s.Spent != nil {
		a.field("spent", budgetText(*s.Spent))
	}
	a.printIdentity(s)
	a.field("closing record", string(s.Closing))
	for _, ap := range s.Approvals {
		if ap.Tool == agent.ToolUpgrade {
			fmt.Fprintf(a.Out, "\n%s %s\n", a.paint(a.Out, bold, "another definition of the agent"), approval.Visible(ap.Args))
			a.printApproval("  ", &ap)
		}
	}
	for _, step := range s.Steps {
		a.printStep(step)
	}
	if len(s.Undos) > 0 {
		fmt.Fprintf(a.Out, "\n%s\n", a.paint(a.Out, bold, "compensations"))
	}
	for i, act := range s.Undos {
		a.printAction(fmt.Sprint(i+1), act)
	}
	a.printEffects(s)
	if len(s.Refused) > 0 {
		fmt.Fprintf(a.Out, "\n%s\n", a.paint(a.Out, bold, "words that do not count"))
	}
	for _, r := range s.Refused {
		fmt.Fprintf(a.Out, "  refused %s%s: %s\n", clock(r.At), by(r.Approver), line(r.Why, 2*lineLimit))
	}
}

// printEffects lists the ledger, with what it takes a person to do.
func (a *App) printEffects(s *shownTurn) {
	if len(s.Effects)+len(s.Folded) == 0 {
		return
	}
	later := ""
	if s.Source == sourceClosing {
		later = "; with what came later: holdfast effects " + address{session: s.Session, turn: s.Turn}.String()
	}
	fmt.Fprintf(a.Out, "\n%s (told by its %s%s)\n", a.paint(a.Out, bold, "effects"), line(s.Source, 32), later)
	for _, e := range s.Effects {
		fmt.Fprintf(a.Out, "  %s %s  %s\n", line(string(e.State), 32), line(e.Tool, 64), line(e.Key, 240))
		a.field("  note", e.Note)
		a.field("  evidence", e.Evidence)
		a.field("  conflict", e.Conflict)
		if e.Cancel != "" {
			a.field("  cancel", cancelText(e.Cancel))
		}
		if e.State == agent.StateUncertain {
			a.field("  settle with", settleCommand(e.Key))
		}
	}
	for _, c := range s.Folded {
		fmt.Fprintf(a.Out, "  %s %d earlier ones\n", line(string(c.State), 32), c.N)
	}
}

// field prints a name and what it holds, whole, on one line.
func (a *App) field(name, value string) {
	if value != "" {
		fmt.Fprintf(a.Out, "  %-15s %s\n", name, approval.Visible(value))
	}
}

func (a *App) printStep(s shownStep) {
	fmt.Fprintf(a.Out, "\n%s%s\n", a.paint(a.Out, bold, fmt.Sprintf("step %d", s.Step)), attempts(s.Attempt))
	a.field("said", s.Said)
	a.field("trouble", s.Trouble)
	if s.By != nil {
		a.field("by", producerText(s))
	}
	a.field("boundary", crossed(s.Boundary))
	a.field("tools", s.Withheld)
	if s.Usage != nil {
		a.field("usage", usageText(*s.Usage))
	}
	for _, act := range s.Actions {
		a.printAction(fmt.Sprintf("%d.%d", s.Step, act.Call), act)
	}
}

// printAction prints a call. Its arguments are shown whole: what a person reads here is what the tool got.
func (a *App) printAction(number string, act shownAction) {
	fmt.Fprintf(a.Out, "  %s %s %s\n", number, approval.Visible(act.Tool), approval.Visible(act.Args))
	a.field("  proposed", act.Proposed)
	a.field("  key", act.Key)
	a.field("  undoes", act.Undoes)
	a.field("  effect", string(act.Class))
	a.field("  verdict", verdictText(act.Verdict))
	for _, ap := range act.Approvals {
		a.printApproval("    ", &ap)
	}
	a.field("  trouble", act.Trouble)
	a.field("  boundary", crossed(act.Boundary))
	a.field("  state", string(act.State))
	if act.Result != nil {
		a.field("  outcome", outcomeText(act.Result, act.Attempt))
		a.field("  result", resultText(act.Result))
		a.field("  by", toolProducer(act.Result))
	} else if act.Pending && act.Trouble == "" {
		a.field("  outcome", "not known yet")
	}
}

func resultText(r *agent.ToolResult) string {
	text := line(r.Text, 400)
	if r.Body != nil {
		text += fmt.Sprintf(" (%d bytes, %s)", r.Body.Size, r.Body.Digest.Short())
	}
	return text
}

// printIdentity prints what a turn works with and where its session is from.
func (a *App) printIdentity(s *shownTurn) {
	a.field("definition", string(s.Definition))
	by := pieces{}
	by.add("model", s.Model)
	by.add("policy", s.Policy)
	by.add("build", s.Build)
	a.field("opened with", by.String())
	on := pieces{}
	if s.Change > 0 {
		on.add("number", fmt.Sprint(s.Change))
	}
	on.add(s.Versioning, s.Deployment)
	a.field("change", on.String())
	if o := s.Origin; o != nil {
		a.field("forked from", originText(o))
	}
	if by := s.SessionBy; by != nil && (by.Definition != s.Definition || by.Build != s.Build) {
		last := pieces{}
		last.add("definition", by.Definition.Short())
		last.add("policy", by.Policy)
		last.add("build", by.Build)
		a.field("session's last", last.String())
	}
	a.field("boundary", crossed(s.Boundary))
}

func originText(o *agent.Origin) string {
	text := address{session: o.From.Session, turn: o.Turn}.String() + ", life " + o.From.Life
	if o.Root != o.From {
		text += ", a fork of " + o.Root.String()
	}
	if o.By != "" {
		text += ", by " + o.By
	}
	return text
}

// pieces are names with what they hold, for a line.
type pieces []string

func (p *pieces) add(name, value string) {
	if value != "" {
		*p = append(*p, strings.TrimSpace(name+" "+value))
	}
}

func (p pieces) String() string { return strings.Join(p, ", ") }

func producerText(s shownStep) string {
	p := pieces{}
	p.add("", s.By.Model)
	p.add("fingerprint", s.By.Fingerprint)
	p.add("prompt", s.Prompt.Short())
	p.add("tools", cmp.Or(s.Tools.Short(), s.By.Tools))
	p.add("policy", s.Policy.Short())
	p.add("build", s.By.Build)
	if s.Code != s.By.Build {
		p.add("workflow code", s.Code)
	}
	return p.String()
}

func toolProducer(r *agent.ToolResult) string {
	p := pieces{}
	p.add("version", r.Version)
	p.add("build", r.Build)
	return p.String()
}
