package starter

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

type approvalsShowOptions struct {
	app  *App
	full bool
}

func newApprovalsShow(a *App) *cobra.Command {
	o := &approvalsShowOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one request: the exact action, who may decide, and what was decided",
		Long: `Shows a request for approval with the exact action that it is about. ID is the request's id, the key of its action,
or SESSION or SESSION/turn-N where exactly one request waits.

What stands right of a bar (a colon where it goes on) comes from the model, the tool's target or other people; nothing in it can pass for what
stands left of it. Characters that would not be seen are written out, such as ⟨U+200B⟩. Long values show their beginning
and their end; --full shows all of them.`,
		Example: `  holdfast approvals show support-x7k2mq
  holdfast approvals show 'support-x7k2mq~1a2b3c4d:turn-1/2.1/0123456789abcdef#1' --full`,
		Args:              cobra.ExactArgs(1),
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) },
		ValidArgsFunction: a.completeApprovals,
	}
	cmd.Flags().BoolVar(&o.full, "full", false, "show long values whole")
	return cmd
}

// A shownApproval is a request as -o json prints it.
type shownApproval struct {
	Workflow string      `json:"workflow"`
	Scope    agent.Scope `json:"scope"`
	agent.Approval
	Digest agent.Digest `json:"digest"` // the action's, which a decision must name
	// Source is who tells of it: the turn, or its history, when the turn does not answer.
	Source string `json:"source"`
	// AskedBy is the build that asked, Build the one that goes on with the turn, if they differ.
	AskedBy string          `json:"askedBy,omitempty"`
	Build   string          `json:"build,omitempty"`
	Refused []agent.Refusal `json:"refused,omitempty"`
	// Verified says that the digest was computed here from the request's own fields; Trouble, that they do not
	// fit together.
	Verified bool   `json:"verified"`
	Trouble  string `json:"trouble,omitempty"`
}

func (o *approvalsShowOptions) run(ctx context.Context, id string) error {
	ref, err := parseApproval(id)
	if err != nil {
		return err
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	f, err := c.findApproval(ctx, ref)
	if err != nil {
		return o.app.unanswered(ctx, c, err)
	}
	askedBy, build := c.askedElsewhere(ctx, &f)
	f.moved = movedText(askedBy, build)
	if f.silent != nil {
		defer o.app.note("%s %s", o.app.paint(o.app.Err, yellow, "note:"), c.whyNoAnswer(ctx, f.workflow, o.app, f.silent.err).why)
	}
	if o.app.json() {
		v := shownApproval{
			Workflow: f.workflow, Scope: f.scope, Approval: f.Approval, Digest: f.Action, Source: sourceTurn,
			AskedBy: askedBy, Build: build, Refused: f.refused,
		}
		if f.silent != nil {
			v.Source = sourceHistory
		}
		verified, err := f.distrust()
		if v.Verified = verified; err != nil {
			v.Trouble = err.Error()
		}
		return o.app.printJSON(v)
	}
	s := o.app.sheet(o.app.Out, o.full)
	s.request(&f, time.Now())
	s.answers(&f)
	return nil
}

// unanswered says what to do about a turn that does not answer.
func (a *App) unanswered(ctx context.Context, c *conn, err error) error {
	var silent *silentTurn
	if !errors.As(err, &silent) {
		return err
	}
	if why := c.absenceAt(ctx, silent.workflow, a); why != "" {
		return withHint(err, "%s", why)
	}
	return withHint(err, "a worker has to answer; see why none does: holdfast show %s", strings.SplitN(silent.workflow, ":", 2)[0])
}

// request shows all of a request.
func (s *sheet) request(f *foundApproval, now time.Time) {
	fmt.Fprintf(s.w, "%s %s\n", s.label("approval"), approval.Visible(f.ID))
	s.say("state", "%s", stateText(&f.Approval, now))
	if f.Outcome == agent.OutcomePending {
		s.say("expires", "%s (%s)", expiry(f.ExpiresAt, now), moment(f.ExpiresAt))
	}
	if f.silent != nil {
		s.say("told by", "the turn's history: the turn itself does not answer")
	}
	if f.moved != "" {
		s.say("moved", "%s", f.moved)
	}
	s.row("note", f.Note, "")
	s.action(f)
	s.asked(f)
	for _, d := range f.Decisions {
		s.decision(d)
	}
	for _, x := range f.refused {
		s.row("refused", strings.TrimSpace(x.Choice+" by "+x.Approver+": "+x.Why), moment(x.At))
	}
}

// answers says how to decide, in lines that can be copied; nothing for what cannot be decided on.
func (s *sheet) answers(f *foundApproval) {
	if _, err := f.distrust(); err != nil || f.Outcome != agent.OutcomePending {
		return
	}
	who := ""
	if f.Terms.Signed && os.Getenv("HOLDFAST_KEY") == "" {
		who = " --as NAME --key FILE"
	}
	fmt.Fprintf(s.w, "\nholdfast approve '%s' --digest %s%s\nholdfast decline '%s' --reason \"...\"%s\n", f.ID, f.Action, who, f.ID, who)
}

// action shows what would be done: every field that the digest covers, and the digest.
func (s *sheet) action(f *foundApproval) {
	remark := ""
	if name, _ := upgradeOf(f.Tool, f.Args); name != "" {
		remark = wantedText(f.Tool, f.Args)
	}
	s.row("tool", f.Tool, remark)
	s.say("effect", "%s", effectText(f))
	s.row("resource", f.Terms.Resource, "")
	s.arguments("arguments", f.Args)
	switch verified, err := f.distrust(); {
	case err != nil:
		s.row("digest", string(f.Action), "")
		s.row("NOT CONSISTENT", err.Error(), "do not decide on it: it cannot be what the turn asks for")
	case verified:
		s.row("digest", string(f.Action), "computed here from what is shown")
	default:
		s.row("digest", string(f.Action), "the turn's word: it does not say the tool's version")
	}
	if o := f.Terms.Observed; o != nil {
		if o.Trouble == "" {
			s.row("target before", o.Text, "seen "+moment(o.At)+", "+o.Digest.Short())
		}
		s.row("not observed", o.Trouble, "")
	}
	if f.Terms.First != "" {
		s.row("done before", f.Terms.First, "an identical action has committed in this session under this key")
	}
	if f.Proposed != "" {
		s.arguments("model wanted", f.ProposedArgs)
		s.row("", string(f.Proposed), "the digest of that; an approver edited the arguments")
	}
}

// asked shows why somebody is asked and who may answer.
func (s *sheet) asked(f *foundApproval) {
	s.row("asked by rule", f.Verdict.Rule, "policy "+line(f.Verdict.Policy, 16))
	s.row("asked again", f.Why, "")
	t := f.Terms
	who := "anybody"
	if len(t.By) > 0 {
		who = strings.Join(t.By, ", ")
	}
	s.row("may decide", who, condition(t))
	if len(t.EscalateTo) > 0 && !f.EscalatesAt.IsZero() {
		s.row("from "+f.EscalatesAt.Local().Format(time.TimeOnly), strings.Join(t.EscalateTo, ", "), "may decide too, from "+moment(f.EscalatesAt))
	}
}

func condition(t agent.Terms) string {
	parts := []string{"1 approval is enough"}
	if t.Quorum > 1 {
		parts[0] = fmt.Sprintf("%d different people must approve", t.Quorum)
	}
	if t.Signed {
		parts = append(parts, "signed")
	}
	if t.NotSender {
		parts = append(parts, "not by who sent the message")
	}
	return strings.Join(parts, ", ")
}

func (s *sheet) decision(d agent.Decided) {
	proof := "claimed: no signature proves the name"
	if !d.Claimed {
		proof = "signed with " + line(d.Key, 80)
	}
	s.row("decided", string(d.Choice)+" by "+d.Approver, proof+", "+moment(d.At))
	s.row("its reason", d.Reason, "")
	if d.Args != "" {
		s.arguments("edited to", d.Args)
	}
}

func effectText(f *foundApproval) string {
	texts := map[agent.Class]string{
		agent.ClassRead: "read: changes nothing", agent.ClassIdempotent: "idempotent: the destination knows it again by its key",
		agent.ClassReconcilable: "reconcilable: the destination can be asked what became of it",
		agent.ClassOnce:         "once: what may have been sent is never sent again",
	}
	text, ok := texts[f.Class]
	if !ok {
		text = line(string(f.Class), 40)
	}
	if f.Terms.Risk != "" {
		text += ", risk " + line(string(f.Terms.Risk), 20)
	}
	return text
}

// stateText says where a request stands.
func stateText(a *agent.Approval, now time.Time) string {
	asked := fmt.Sprintf("asked %s ago (%s)", span(now.Sub(a.RequestedAt)), moment(a.RequestedAt))
	if a.Outcome != agent.OutcomePending {
		text := line(string(a.Outcome), 32)
		if !a.EndedAt.IsZero() {
			text += " " + moment(a.EndedAt)
		}
		return text + ", " + asked
	}
	text := "waits, " + asked
	if n := approvals(a); n > 0 {
		text = fmt.Sprintf("has %d of %d approvals, %s", n, max(a.Terms.Quorum, 1), asked)
	}
	return text
}

// approvals counts the people who have approved.
func approvals(a *agent.Approval) int {
	var who []string
	for _, d := range a.Decisions {
		if d.Choice == agent.ChoiceApprove && !slices.Contains(who, d.Approver) {
			who = append(who, d.Approver)
		}
	}
	return len(who)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// span is a duration for a person: its two largest units.
func span(d time.Duration) string {
	d = max(d, 0)
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm%ds", minutes, int(d.Seconds())%60)
	}
	return fmt.Sprintf("%ds", int(d.Seconds()))
}
