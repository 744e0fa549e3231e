package starter

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/transcript"
)

type transcriptOptions struct {
	app     *App
	session string
	turn    int
	verify  bool
	store   string
}

func newTranscript(a *App) *cobra.Command {
	o := &transcriptOptions{app: a}
	cmd := &cobra.Command{
		Use:   "transcript SESSION",
		Short: "Print who said what, or verify that all of it is there",
		Long: `Reads the conversation from the store that holdfast.yaml or --store names. What is missing is shown as a gap.
With --verify it reads every object of the conversation, names the first segment that does not follow and exits
with 1.`,
		Example: `  holdfast transcript support-x7k2mq
  holdfast transcript support-x7k2mq --turn 2
  holdfast transcript support-x7k2mq --verify --store s3://agents`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.session = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: a.completeSessions,
	}
	f := cmd.Flags()
	f.IntVar(&o.turn, "turn", 0, "only this turn")
	f.BoolVar(&o.verify, "verify", false, "check every object")
	f.StringVar(&o.store, "store", "", "the store's `URL` (default: the configuration's)")
	return cmd
}

// A stretch is the part of a transcript between two heads.
type stretch struct {
	scope    agent.Scope
	from, to agent.Head
	store    string // identity of the store that it is in
}

func (o *transcriptOptions) run(ctx context.Context) error {
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
	part, err := o.locate(ctx, c)
	if err != nil {
		return err
	}
	s, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	if part.store != "" && part.store != s.ID() {
		return withHint(fmt.Errorf("session %q is in store %s, and this one is %s", o.session, line(part.store, 40), s.ID()),
			"name the workers' store with --store, or their configuration with --config")
	}
	log := transcript.New(s, 0)
	if o.verify {
		return o.check(ctx, log, part)
	}
	return o.print(ctx, log, part)
}

// locate finds in the histories which stretch of the transcript is meant; it needs no worker.
func (o *transcriptOptions) locate(ctx context.Context, c *conn) (stretch, error) {
	info, err := c.describeSession(ctx, o.session)
	if err != nil {
		return stretch{}, err
	}
	part := stretch{scope: agent.NewScope(o.session, firstRunOf(info))}
	n := o.turn
	if n == 0 {
		if n, err = c.latestTurn(ctx, o.session); err != nil {
			return part, err
		}
		if n == 0 {
			return part, c.atFork(ctx, &part)
		}
	}
	log, err := c.turnLog(ctx, o.session, n)
	if isNotFound(err) {
		return part, fmt.Errorf("session %q has no turn %d, or its history is gone", o.session, n)
	}
	if err != nil {
		return part, err
	}
	part.to, part.store = log.head, log.store()
	if o.turn != 0 {
		part.from = log.from
	}
	if log.reason != nil && log.reason.Type == agent.ErrTerminated {
		// The session has found out where a turn ended that could not say it itself.
		if v, err := c.view(ctx, o.session); err == nil && o.turn == 0 {
			part.to = v.Head
		}
	}
	return part, nil
}

// atFork is for a session that has had no turn yet: a fork begins with what was said before it.
func (c *conn) atFork(ctx context.Context, part *stretch) error {
	return c.backwards(ctx, part.scope.Session, func(s *sessionLog) bool {
		if s.forked != nil {
			part.to, part.store = s.forked.Origin.Head, s.forked.Store
		}
		return s.forked != nil
	})
}

// store is the identity of the store that the turn's worker used.
func (t *turnLog) store() string {
	switch {
	case t.result != nil && t.result.Store != "":
		return t.result.Store
	case t.opened != nil && t.opened.Store != "":
		return t.opened.Store
	case t.input != nil:
		return t.input.Store
	}
	return ""
}

// open opens the store to read it.
func (o *transcriptOptions) open(ctx context.Context) (*store.Store, error) {
	s, err := o.app.openStore(ctx, o.store)
	var hinted *hintError
	if err != nil && o.store == "" && !errors.As(err, &hinted) {
		err = withHint(err, "the transcript is in the workers' store: name it with --store, or their configuration with --config")
	}
	return s, err
}

// said is one entry as -o json prints it.
type said struct {
	Role    agent.Role  `json:"role"`
	Call    string      `json:"call,omitempty"`
	Text    string      `json:"text,omitempty"`
	Raw     []byte      `json:"text_base64,omitempty"` // instead of text, when it is not UTF-8
	Body    *agent.Body `json:"body,omitempty"`
	Calls   []saidCall  `json:"calls,omitempty"`
	Refusal string      `json:"refusal,omitempty"`
	Lost    bool        `json:"lost,omitempty"` // the text is not in the store any more
}

type saidCall struct {
	ID   string      `json:"id"`
	Name string      `json:"name"`
	Args string      `json:"args"`                  // exactly as the model wrote them
	Raw  []byte      `json:"args_base64,omitempty"` // instead of args, when they are not UTF-8
	Body *agent.Body `json:"body,omitempty"`
}

// exact splits what JSON can hold from what it would silently repair.
func exact(s string) (text string, raw []byte) {
	if utf8.ValidString(s) {
		return s, nil
	}
	return "", []byte(s)
}

type missing struct {
	Gap    string `json:"gap"` // why
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Proven bool   `json:"proven"` // that what stands before it belongs here
}

func (o *transcriptOptions) print(ctx context.Context, log *transcript.Log, part stretch) error {
	conv, err := log.Read(ctx, part.scope, part.to)
	if err != nil {
		return err
	}
	skip := 0
	if part.from.Seq > 0 {
		before, err := log.Read(ctx, part.scope, part.from)
		if err != nil {
			return err
		}
		skip = min(len(before.Entries), len(conv.Entries))
	}
	texts, lost, err := log.Texts(ctx, part.scope, conv.Entries[skip:])
	if err != nil {
		return err
	}
	gone := map[int]bool{}
	for _, i := range lost {
		gone[i+skip] = true
	}
	gaps := conv.Gaps
	for i := skip; i <= len(conv.Entries); i++ {
		for len(gaps) > 0 && gaps[0].At <= i {
			if gaps[0].To > part.from.Seq {
				o.printGap(gaps[0])
			}
			gaps = gaps[1:]
		}
		if i < len(conv.Entries) {
			o.printEntry(conv.Entries[i], texts[i-skip], gone[i])
		}
	}
	return nil
}

func (o *transcriptOptions) printGap(g transcript.Gap) {
	a := o.app
	if a.json() {
		_ = a.printJSON(missing{g.Reason, g.From, g.To, !g.Unverified})
		return
	}
	fmt.Fprintf(a.Out, "%s\n", a.paint(a.Out, red, fmt.Sprintf("[gap: segments %d to %d: %s]", g.From, g.To, line(g.Reason, 300))))
}

func (o *transcriptOptions) printEntry(e transcript.Entry, text string, lost bool) {
	a := o.app
	if a.json() {
		out := said{Role: e.Role, Call: e.Call, Body: e.Body, Refusal: e.Refusal, Lost: lost}
		out.Text, out.Raw = exact(text)
		for _, c := range e.Calls {
			call := saidCall{ID: c.ID, Name: c.Name, Body: c.Body}
			call.Args, call.Raw = exact(c.Args)
			out.Calls = append(out.Calls, call)
		}
		_ = a.printJSON(out)
		return
	}
	who := line(string(e.Role), 32)
	if e.Call != "" {
		who += " " + line(e.Call, 64)
	}
	fmt.Fprintf(a.Out, "%s\n", a.paint(a.Out, bold, who+":"))
	switch {
	case lost:
		fmt.Fprintln(a.Out, a.paint(a.Out, red, "[the text is lost]"))
	case text != "":
		_ = a.answer(text)
	}
	if e.Refusal != "" {
		fmt.Fprintf(a.Out, "refused: %s\n", line(e.Refusal, 1000))
	}
	for _, c := range e.Calls {
		fmt.Fprintf(a.Out, "-> %s %s (%s)\n", line(c.Name, 64), visibleLines(c.Args), line(c.ID, 64))
	}
	fmt.Fprintln(a.Out)
}

// verified is what --verify prints with -o json.
type verified struct {
	Session  string               `json:"session"`
	OK       bool                 `json:"ok"`
	Head     agent.Head           `json:"head"`
	First    int64                `json:"first,omitempty"` // the first segment that does not follow
	Objects  int                  `json:"objects"`
	Findings []transcript.Finding `json:"findings,omitempty"`
	Gaps     []missing            `json:"gaps,omitempty"`
	Strays   int                  `json:"strays,omitempty"`
}

func (o *transcriptOptions) check(ctx context.Context, log *transcript.Log, part stretch) error {
	r, err := log.Verify(ctx, part.scope, part.to)
	if err != nil {
		return err
	}
	a := o.app
	if a.json() {
		v := verified{Session: o.session, OK: r.OK(), Head: r.Head, First: r.First, Objects: r.Objects, Findings: r.Findings, Strays: r.Strays}
		for _, g := range r.Gaps {
			v.Gaps = append(v.Gaps, missing{g.Reason, g.From, g.To, !g.Unverified})
		}
		if err := a.printJSON(v); err != nil {
			return err
		}
		if r.OK() {
			return nil
		}
		return &exitError{code: ExitError}
	}
	for _, f := range r.Findings {
		mended := "lost"
		if f.Mended != "" {
			mended = "read from " + line(f.Mended, 120)
		}
		fmt.Fprintf(a.Out, "segment %d: %s: %s; %s\n", f.Seq, line(f.Object, 160), line(f.Problem, 300), mended)
	}
	for _, g := range r.Gaps {
		o.printGap(g)
	}
	switch {
	case r.OK():
		fmt.Fprintf(a.Out, "%s: %d segments follow, %d objects are as they were written, head %s\n", o.session, r.Head.Seq, r.Objects, r.Head.Hash)
		return nil
	case r.First > 0:
		return fmt.Errorf("transcript of %q: segment %d is the first that does not follow", o.session, r.First)
	}
	return fmt.Errorf("transcript of %q: not everything is as it was written", o.session)
}
