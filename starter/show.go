package starter

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"
	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
)

type showOptions struct {
	app  *App
	at   address
	turn int
}

func newShow(a *App) *cobra.Command {
	o := &showOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show SESSION[/turn-N]",
		Short: "Show a turn's steps, actions, approvals, effects and cost",
		Long: `Shows what a turn did, step by step, and who produced each result: the model and its fingerprint, the version of the
tool, the policy, the worker's build, the build of the workflow's code and, when holdfast.yaml names the workers' store,
the digests of the prompt and of the tool schemas. Where one of them is another than in the step before, or in the turn
before, the step says "boundary" and what changed. A turn that does not go on says why, and what to do.`,
		Example: `  holdfast show support-x7k2mq
  holdfast show support-x7k2mq/turn-2 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := parseAddress(args[0])
			if err != nil {
				return err
			}
			o.at = at
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
	// Before is the definition of the session's turn before this one.
	Before agent.Digest `json:"before,omitempty"`
	Model  string       `json:"model,omitempty"`
	Policy string       `json:"policy,omitempty"` // that opened it
	Build  string       `json:"build,omitempty"`  // that opened it
	Change int          `json:"change,omitempty"` // its change number: see docs/versioning.md
	// Deployment is the build of a worker deployment that goes on with it, "agents:v2", Versioning pinned or auto_upgrade.
	Deployment string `json:"deployment,omitempty"`
	Versioning string `json:"versioning,omitempty"`
	// Origin is where its session was forked from, SessionBy what that session's latest turn to end worked with.
	Origin    *agent.Origin   `json:"origin,omitempty"`
	SessionBy *agent.Identity `json:"sessionBy,omitempty"`
	// Boundary is what changed at its opening against the turn before, and after its last step.
	Boundary []boundary    `json:"boundary,omitempty"`
	Store    string        `json:"store,omitempty"`
	Head     agent.Head    `json:"head"`
	Usage    agent.Usage   `json:"usage"`
	Spent    *agent.Budget `json:"spent,omitempty"`
	Steps    []shownStep   `json:"steps"`
	// Undos are the compensations that ran in this turn, or, with Undo, all that there is.
	Undos     []shownAction    `json:"compensations,omitempty"`
	Undo      *agent.UndoInput `json:"undo,omitempty"`
	Source    string           `json:"source"` // who tells of the effects and the approvals
	Effects   []agent.Effect   `json:"effects,omitempty"`
	Folded    []agent.Count    `json:"folded,omitempty"` // settled ones that the turn only counts
	Approvals []agent.Approval `json:"approvals,omitempty"`
	Refused   []agent.Refusal  `json:"refused,omitempty"` // decisions and settlements that did not count
	Closing   agent.Digest     `json:"closing,omitempty"`
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
	// The digests of the record in the store, when that is at hand.
	Prompt agent.Digest `json:"prompt,omitempty"`
	Tools  agent.Digest `json:"tools,omitempty"`
	Policy agent.Digest `json:"policy,omitempty"`
	Code   string       `json:"code,omitempty"` // the build whose workflow code asked
	// Withheld says which of the definition's tools the model was not offered, and why.
	Withheld string `json:"withheld,omitempty"`
	// Boundary is what changed against the step before, at the first step against the session's turn before.
	Boundary []boundary    `json:"boundary,omitempty"`
	Actions  []shownAction `json:"actions,omitempty"`
	head     agent.Head    // that the answer led to
}

type shownAction struct {
	Call int    `json:"call"`
	ID   string `json:"id,omitempty"`
	Tool string `json:"tool"`
	Args string `json:"args,omitempty"` // exactly as the tool got them
	// Proposed are the model's own arguments, when an approver edited them.
	Proposed string            `json:"proposed,omitempty"`
	Class    agent.Class       `json:"class,omitempty"`
	Key      string            `json:"key,omitempty"`
	Verdict  agent.Verdict     `json:"verdict,omitzero"`
	Trouble  string            `json:"trouble,omitempty"`
	Result   *agent.ToolResult `json:"result,omitempty"`
	Attempt  int               `json:"attempt,omitempty"`
	Pending  bool              `json:"pending,omitempty"`
	State    agent.State       `json:"state,omitempty"`  // of the effect
	Undoes   string            `json:"undoes,omitempty"` // key of the effect that it compensates
	// Approvals are the requests for it, the latest last.
	Approvals []agent.Approval `json:"approvals,omitempty"`
	Code      string           `json:"code,omitempty"` // the build whose workflow code sent it
	Boundary  []boundary       `json:"boundary,omitempty"`
}

func (o *showOptions) run(ctx context.Context) error {
	if o.turn < 0 {
		return usageError("--turn %d: turns count from 1", o.turn)
	}
	if o.turn != 0 && o.at.turn != 0 {
		return usageError("the turn is given twice: as %s and by --turn", o.at)
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	info, err := c.describeSession(ctx, o.at.session)
	if err != nil {
		return err
	}
	if o.at.turn == 0 {
		if o.at.turn, err = c.turnOrLatest(ctx, o.at.session, o.turn); err != nil {
			return err
		}
	}
	log := newTurnLog(decoder{c.payloads}, o.at.turn)
	log.seen = c.versionsBefore(ctx, o.at)
	err = c.readLog(ctx, o.at, log)
	if isNotFound(err) {
		return noTurn(o.at.session, o.at.turn)
	}
	if err != nil {
		return err
	}
	s := log.shown(o.at.session)
	o.ask(ctx, c, log, agent.NewScope(o.at.session, firstRunOf(info)), &s)
	o.place(ctx, c, log, &s)
	if o.app.json() {
		return o.app.printJSON(s)
	}
	o.app.printTurn(&s)
	return nil
}

// ask adds what the turn itself, or its closing record, knows better than the history.
func (o *showOptions) ask(ctx context.Context, c *conn, log *turnLog, scope agent.Scope, s *shownTurn) {
	f := newFinder(c, o.app.storeAtHand(ctx))
	defer f.close()
	l := &ledger{at: o.at, scope: scope, running: !log.ended}
	s.Source = sourceHistory
	s.identify(ctx, f.store, scope)
	s.withhold(ctx, f.store, scope, c.pins(s.Agent))
	defer o.askSession(ctx, f, s)
	switch {
	case log.ended && f.closed(ctx, l):
	case f.answers(ctx, l, f.deskOf(ctx, o.at)):
	case !log.ended:
		o.app.note("note: the turn itself does not answer; this is what its history says")
		s.attach()
		return
	default:
		s.attach()
		return
	}
	s.Source, s.Effects, s.Folded, s.Approvals, s.Refused = l.source, l.effects, l.folded, l.approvals, l.refused
	if v := l.view; v != nil {
		s.Waiting, s.Usage, s.Head, s.Spent = waitingText(v), v.Usage, v.Head, &v.Spent
		if v.Status != "" {
			s.Status = v.Status
		}
	}
	s.attach()
}

// place adds what the server says of a run: which build goes on with it and, if it does not, why.
func (o *showOptions) place(ctx context.Context, c *conn, log *turnLog, s *shownTurn) {
	d, err := c.describe(ctx, o.at.workflow(), "")
	if err != nil {
		return // the history was there a moment ago, and says enough
	}
	p := placementOf(d.GetWorkflowExecutionInfo())
	s.Deployment, s.Versioning = cmp.Or(p.version(), s.Deployment), cmp.Or(p.behavior(), s.Versioning)
	if !log.ended {
		s.Trouble = c.whySilent(ctx, d, o.app.queue("")).String()
	}
}

// askSession adds what only the session knows.
func (o *showOptions) askSession(ctx context.Context, f *finder, s *shownTurn) {
	var v agent.SessionView
	at := address{session: o.at.session}
	if f.ask(ctx, at.workflow(), f.deskOf(ctx, at), agent.QuerySession, &v) != nil {
		return
	}
	if v.Origin != nil {
		s.Origin = v.Origin
	}
	if v.By != (agent.Identity{}) {
		s.SessionBy = &v.By
	}
}

// turnLog reads all runs of a turn as far as they are there.
func (c *conn) turnLog(ctx context.Context, session string, n int) (*turnLog, error) {
	return c.workflowLog(ctx, address{session: session, turn: n})
}

// workflowLog does the same for a turn or a late compensation.
func (c *conn) workflowLog(ctx context.Context, at address) (*turnLog, error) {
	log := newTurnLog(decoder{c.payloads}, at.turn)
	if err := c.readLog(ctx, at, log); err != nil {
		return nil, err
	}
	return log, nil
}

// readLog reads the runs into a log that knows what came before them.
func (c *conn) readLog(ctx context.Context, at address, log *turnLog) error {
	runs, err := c.lineage(ctx, at.workflow())
	if err != nil {
		return err
	}
	for _, run := range runs {
		err := c.read(ctx, reading{workflow: at.workflow(), run: run, each: func(ev *historypb.HistoryEvent) error {
			log.add(ev)
			return nil
		}})
		if err != nil {
			return err
		}
	}
	return nil
}
