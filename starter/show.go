package starter

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

type showOptions struct {
	app     *App
	session string
	turn    int
}

func newShow(a *App) *cobra.Command {
	o := &showOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show SESSION",
		Short: "Show a turn's steps, actions, effects and cost",
		Example: `  holdfast show support-x7k2mq
  holdfast show support-x7k2mq --turn 2 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: a.completeSessions,
	}
	cmd.Flags().IntVar(&o.turn, "turn", 0, "the turn's `number` (default: the latest)")
	return cmd
}

// A shownTurn is a turn as its history and, while it runs, its own word have it.
type shownTurn struct {
	Session    string         `json:"session"`
	Turn       int            `json:"turn"`
	Agent      string         `json:"agent,omitempty"`
	Tenant     string         `json:"tenant,omitempty"`
	Message    *agent.Message `json:"message,omitempty"`
	Status     agent.Status   `json:"status"`
	Waiting    string         `json:"waiting,omitempty"`
	Trouble    string         `json:"trouble,omitempty"` // why a running turn does not go on
	Reason     *agent.Reason  `json:"reason,omitempty"`
	Started    time.Time      `json:"started,omitzero"`
	Ended      time.Time      `json:"ended,omitzero"`
	Definition agent.Digest   `json:"definition,omitempty"`
	Model      string         `json:"model,omitempty"`
	Store      string         `json:"store,omitempty"`
	Head       agent.Head     `json:"head"`
	Usage      agent.Usage    `json:"usage"`
	Steps      []shownStep    `json:"steps"`
	Effects    []agent.Effect `json:"effects,omitempty"` // open ones and, while the turn answers, settled ones
	Folded     []agent.Count  `json:"folded,omitempty"`  // settled ones that the turn only counts
	Closing    agent.Digest   `json:"closing,omitempty"`
}

type shownStep struct {
	Step    int             `json:"step"`
	Said    string          `json:"said,omitempty"`
	Finish  agent.Finish    `json:"finish,omitempty"`
	Usage   *agent.Usage    `json:"usage,omitempty"`
	By      *agent.Producer `json:"by,omitempty"`
	Adopted bool            `json:"adopted,omitempty"`
	Attempt int             `json:"attempt,omitempty"`
	Trouble string          `json:"trouble,omitempty"`
	Actions []shownAction   `json:"actions,omitempty"`
}

type shownAction struct {
	Call    int               `json:"call"`
	ID      string            `json:"id,omitempty"`
	Tool    string            `json:"tool"`
	Args    string            `json:"args,omitempty"` // exactly as the tool got them
	Class   agent.Class       `json:"class,omitempty"`
	Key     string            `json:"key,omitempty"`
	Verdict agent.Verdict     `json:"verdict,omitzero"`
	Trouble string            `json:"trouble,omitempty"`
	Result  *agent.ToolResult `json:"result,omitempty"`
	Attempt int               `json:"attempt,omitempty"`
	Pending bool              `json:"pending,omitempty"`
}

func (o *showOptions) run(ctx context.Context) error {
	if err := checkSessionID(o.session); err != nil {
		return err
	}
	if o.turn < 0 {
		return usageError("--turn %d: turns count from 1", o.turn)
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.describeSession(ctx, o.session); err != nil {
		return err
	}
	n, err := c.turnOrLatest(ctx, o.session, o.turn)
	if err != nil {
		return err
	}
	log, err := c.turnLog(ctx, o.session, n)
	if isNotFound(err) {
		return noTurn(o.session, n)
	}
	if err != nil {
		return err
	}
	s := log.shown(o.session)
	if !log.ended {
		o.askTurn(ctx, c, &s)
		s.Trouble = c.silenceReason(ctx, agent.TurnID(o.session, n), o.app.queue(""))
	}
	if o.app.json() {
		return o.app.printJSON(s)
	}
	o.app.printTurn(&s)
	return nil
}

// askTurn adds what only the turn itself can say; without a worker nobody answers.
func (o *showOptions) askTurn(ctx context.Context, c *conn, s *shownTurn) {
	var v agent.TurnView
	if err := c.ask(ctx, agent.TurnID(o.session, s.Turn), agent.QueryTurn, &v); err != nil {
		o.app.note("note: the turn itself does not answer (%s); this is what its history says", line(err.Error(), 120))
		return
	}
	s.Waiting, s.Effects, s.Folded, s.Usage, s.Head = v.Waiting, v.Ledger, v.Folded, v.Usage, v.Head
	if v.Status != "" {
		s.Status = v.Status
	}
}

// turnLog reads all runs of a turn as far as they are there.
func (c *conn) turnLog(ctx context.Context, session string, n int) (*turnLog, error) {
	return c.workflowLog(ctx, address{session: session, turn: n})
}

// workflowLog does the same for a turn or a late compensation.
func (c *conn) workflowLog(ctx context.Context, at address) (*turnLog, error) {
	id := at.workflow()
	run, err := c.firstRun(ctx, id)
	if err != nil {
		return nil, err
	}
	log := newTurnLog(decoder{c.payloads}, at.turn)
	for {
		err := c.read(ctx, reading{workflow: id, run: run, each: func(ev *historypb.HistoryEvent) error {
			log.add(ev)
			return nil
		}})
		if err != nil {
			return nil, err
		}
		next, err := c.successor(ctx, log, id, run)
		if err != nil || next == "" {
			return log, err
		}
		run = next
	}
}

// shown puts together what the history says.
func (t *turnLog) shown(session string) shownTurn {
	s := shownTurn{Session: session, Turn: t.turn, Status: t.status, Reason: t.reason, Head: t.head}
	if t.waiting {
		s.Status = agent.StatusWaiting
	}
	if in := t.input; in != nil {
		s.Agent, s.Tenant, s.Store = in.Agent, in.Tenant, in.Store
		if in.Message.ID != "" {
			s.Message = &in.Message
		}
	}
	if t.opened != nil {
		s.Definition, s.Model, s.Store = t.opened.Definition, t.opened.Model, t.opened.Store
	}
	if ts := t.began.GetEventTime(); ts != nil {
		s.Started = ts.AsTime()
	}
	if ts := t.last.GetEventTime(); ts != nil && t.ended {
		s.Ended = ts.AsTime()
	}
	for _, a := range t.order {
		t.place(&s, a)
	}
	if t.result != nil {
		s.Usage, s.Effects, s.Closing = t.result.Usage, t.result.Effects, t.result.Closing
	}
	return s
}

// place puts one activity where it belongs.
func (t *turnLog) place(s *shownTurn, a *activity) {
	switch {
	case a.model != nil:
		step := shownStep{Step: a.model.Step, Attempt: a.attempt, Trouble: a.trouble}
		if r := a.result; r != nil {
			step.Said, step.Finish, step.Usage, step.By, step.Adopted = r.Text, r.Finish, &r.Usage, &r.Producer, r.Adopted
			s.Usage = s.Usage.Add(r.Usage)
			for i, c := range r.Calls {
				step.Actions = append(step.Actions, shownAction{
					Call: i + 1, ID: c.ID, Tool: c.Tool, Args: c.Args,
					Class: c.Class, Verdict: c.Verdict, Trouble: c.Trouble, Pending: c.Trouble == "" && c.Verdict.Decision == agent.DecisionAllow,
				})
			}
		}
		s.Steps = append(s.Steps, step)
	case a.tool != nil:
		act := s.action(a.tool.Place)
		act.Tool, act.Args, act.Class = a.tool.Tool, a.tool.Args, a.tool.Class
		act.Key = agent.ActionKey(a.tool.Scope, a.tool.Place, a.tool.Action)
		act.Result, act.Attempt, act.Pending = a.outcome, a.attempt, a.open
		if a.trouble != "" {
			act.Trouble = a.trouble
		}
	}
}

// action finds the action at a place or makes room for one: a history need not hold its step.
func (s *shownTurn) action(p agent.Place) *shownAction {
	var step *shownStep
	for i := range s.Steps {
		if s.Steps[i].Step == p.Step {
			step = &s.Steps[i]
		}
	}
	if step == nil {
		s.Steps = append(s.Steps, shownStep{Step: p.Step})
		step = &s.Steps[len(s.Steps)-1]
	}
	for i := range step.Actions {
		if step.Actions[i].Call == p.Call {
			return &step.Actions[i]
		}
	}
	step.Actions = append(step.Actions, shownAction{Call: p.Call})
	return &step.Actions[len(step.Actions)-1]
}

func (a *App) printTurn(s *shownTurn) {
	fmt.Fprintf(a.Out, "%s turn %d: %s\n", a.paint(a.Out, bold, s.Session), s.Turn, a.paint(a.Out, bold, line(string(s.Status), 32)))
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
	a.field("definition", string(s.Definition))
	a.field("closing record", string(s.Closing))
	for _, step := range s.Steps {
		a.printStep(step)
	}
	if len(s.Effects) > 0 {
		fmt.Fprintf(a.Out, "\n%s\n", a.paint(a.Out, bold, "effects"))
	}
	for _, e := range s.Effects {
		fmt.Fprintf(a.Out, "  %s %s  %s\n", line(string(e.State), 32), line(e.Tool, 64), line(e.Key, 240))
		a.field("  note", e.Note)
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
		a.field("by", producerText(*s.By))
	}
	if s.Usage != nil {
		a.field("usage", usageText(*s.Usage))
	}
	for _, act := range s.Actions {
		// Arguments are shown whole: what a person reads here is what the tool got.
		fmt.Fprintf(a.Out, "  %d.%d %s %s\n", s.Step, act.Call, approval.Visible(act.Tool), approval.Visible(act.Args))
		a.field("  key", act.Key)
		a.field("  effect", string(act.Class))
		if act.Verdict.Decision != "" {
			a.field("  verdict", strings.TrimSpace(string(act.Verdict.Decision)+" by "+act.Verdict.Rule))
		}
		a.field("  trouble", act.Trouble)
		if act.Result != nil {
			a.field("  outcome", outcomeText(act.Result, act.Attempt))
			a.field("  result", resultText(act.Result))
		} else if act.Pending && act.Trouble == "" {
			a.field("  outcome", "not known yet")
		}
	}
}

func resultText(r *agent.ToolResult) string {
	text := line(r.Text, 400)
	if r.Body != nil {
		text += fmt.Sprintf(" (%d bytes, %s)", r.Body.Size, r.Body.Digest.Short())
	}
	return text
}

func producerText(p agent.Producer) string {
	parts := []string{}
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, strings.TrimSpace(name+" "+value))
		}
	}
	add("", p.Model)
	add("fingerprint", p.Fingerprint)
	add("tools", p.Tools)
	add("build", p.Build)
	return strings.Join(parts, ", ")
}
