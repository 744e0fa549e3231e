package starter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

type settleOptions struct {
	app *App
	signFlags
	key      string
	keyed    agent.Key
	outcome  string
	evidence string
	wait     time.Duration
	gone     int // how often the session said that it lists the effect no more
}

func newEffectsSettle(a *App) *cobra.Command {
	o := &settleOptions{app: a}
	cmd := &cobra.Command{
		Use:   "settle KEY",
		Short: "Say what became of an effect whose outcome nobody knows",
		Long: `Settles an uncertain effect with what you have found out at the destination. The turn, or its session when the
turn has ended, looks into it: who you are, by the same rules as with an approval, and whether a record says
otherwise. The command waits for its word: accepted exits with 0, refused with 7 and says why. A word that did
not come in time exits with 8; the settlement is on its way then and need not be sent again.`,
		Example: `  holdfast effects settle KEY --outcome committed --evidence "refund 4711 in the bank's list"
  holdfast effects settle KEY --outcome failed --evidence "no such refund" --as alice --key ~/.ssh/id_ed25519`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.key = args[0]
			return o.run(cmd.Context())
		},
		ValidArgsFunction: a.completeUncertain,
	}
	f := cmd.Flags()
	f.StringVar(&o.outcome, "outcome", "", "committed: it happened; or failed: it did not")
	f.StringVar(&o.evidence, "evidence", "", "what you saw that tells so; recorded and shown")
	f.DurationVar(&o.wait, "wait", 30*time.Second, "how long to wait for the word on it")
	o.add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("as", a.completeApprovers)
	_ = cmd.RegisterFlagCompletionFunc("outcome", cobra.FixedCompletions([]string{"committed", "failed"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// A settling is what effects settle prints with -o json.
type settling struct {
	Key      string        `json:"key"`
	Outcome  agent.State   `json:"outcome"`
	By       string        `json:"by"`
	Ref      string        `json:"ref"`
	Workflow string        `json:"workflow"` // that the settlement was sent to
	Result   string        `json:"result"`   // accepted, refused or unanswered
	Why      string        `json:"why,omitempty"`
	Effect   *agent.Effect `json:"effect,omitempty"` // as it is now
}

func (o *settleOptions) check() (err error) {
	if o.keyed, err = parseKey(o.key); err != nil {
		return err
	}
	switch {
	case o.outcome != string(agent.StateCommitted) && o.outcome != string(agent.StateFailed):
		return usageError("--outcome %q: want committed or failed", o.outcome)
	case o.evidence == "":
		return usageError("no --evidence: say what you saw at the destination")
	case len(o.evidence) > agent.MaxEvidence:
		return usageError("--evidence has %d bytes; the limit is %d", len(o.evidence), agent.MaxEvidence)
	}
	return o.signFlags.check()
}

func (o *settleOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	x, err := o.settlement(ctx)
	if err != nil {
		return err
	}
	if o.print {
		return o.printSigned(o.app, approval.SettlementBytes(o.keyed.Scope, x), x.Time)
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	id, err := c.keeperOf(ctx, o.key, o.keyed)
	if err != nil {
		return err
	}
	res := settling{Key: o.key, Outcome: x.Outcome, By: x.Approver, Ref: x.Ref, Workflow: id, Result: wordUnanswered}
	if err := c.SignalWorkflow(ctx, id, "", agent.SignalSettle, x); err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	err = poll(limit, func() (bool, error) { return o.heard(limit, c, x, &res) })
	if err != nil {
		res.Result = wordUnanswered
	}
	switch {
	case err != nil && ctx.Err() != nil:
		o.app.leave("the settlement is on its way; see what became of it: holdfast effects show '%s'", o.key)
		return err
	case errors.Is(err, errStored):
		return &exitError{ExitWaiting, fmt.Errorf("the settlement was sent and may count; the word on it cannot be read: %w", err)}
	case err != nil && limit.Err() == nil:
		return err
	}
	return o.report(res)
}

func (o *settleOptions) settlement(ctx context.Context) (agent.Settlement, error) {
	at, err := o.moment()
	if err != nil {
		return agent.Settlement{}, err
	}
	x := agent.Settlement{
		Key: o.key, Outcome: agent.State(o.outcome), Evidence: o.evidence, Approver: o.approver(), Time: at, Ref: rand.Text(),
	}
	if !o.print {
		x.Signature, err = o.prove(ctx, approval.SettlementBytes(o.keyed.Scope, x))
	}
	return x, err
}

// keeperOf returns the workflow that keeps an effect now: its turn or late compensation while that runs, else the
// session.
func (c *conn) keeperOf(ctx context.Context, key string, k agent.Key) (string, error) {
	info, err := c.describeSession(ctx, k.Scope.Session)
	if err != nil {
		return "", err
	}
	if agent.NewScope(k.Scope.Session, firstRunOf(info)) != k.Scope {
		return "", fmt.Errorf("effect %q belongs to an earlier session of that name", key)
	}
	at := address{session: k.Scope.Session, turn: k.Place.Turn}
	places := []address{at}
	if k.Undo > 0 {
		past, err := c.pastOf(ctx, at)
		if err != nil {
			return "", err
		}
		places = append(places, past.started...)
	}
	for _, at := range places {
		d, err := c.describe(ctx, at.workflow(), "")
		switch {
		case err != nil && !isNotFound(err):
			return "", err
		case err == nil && d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
			return at.workflow(), nil
		}
	}
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return "", withHint(errSessionClosed{k.Scope.Session}, "nobody keeps its effects any more; what is known: holdfast effects show '%s'", line(key, 240))
	}
	return k.Scope.Session, nil
}

// looks is how often a session must have said that it lists an effect no more before that is taken for a word:
// what settled it may have been somebody else's, whose refusal of this one comes a moment later.
const looks = 3

// heard looks once for the word on a settlement.
func (o *settleOptions) heard(ctx context.Context, c *conn, x agent.Settlement, res *settling) (bool, error) {
	var v agent.EffectsView
	if err := c.ask(ctx, res.Workflow, agent.QueryEffects, &v); err != nil {
		return false, unread(err) // the worker may come back in time
	}
	if res.hear(v, x) {
		return true, nil
	}
	if v.Turn == 0 && res.Result == wordAccepted {
		o.gone++
	}
	return o.gone >= looks, nil
}

// hear looks for the word on a settlement in what a turn or a session says. A session lists only what is unresolved,
// so that what it lists no more has been settled, by whomever; a turn keeps all.
func (res *settling) hear(v agent.EffectsView, x agent.Settlement) bool {
	res.Result = wordUnanswered
	for _, r := range v.Refused {
		if r.Ref == x.Ref {
			res.Result, res.Why = wordRefused, r.Why
			return true
		}
	}
	for _, e := range v.Effects {
		if e.Key != x.Key {
			continue
		}
		if e.State != agent.StateUncertain && takenFrom(e, x) {
			res.Result, res.Effect = wordAccepted, &e
		}
		return res.Result == wordAccepted
	}
	if v.Turn == 0 && v.More == 0 { // with more refusals than are listed, this may be one of them
		res.Result = wordAccepted
	}
	return false
}

// takenFrom says whether what an effect says is from this settlement: its latest stamp is the approver's, or somebody
// has looked at what was final.
func takenFrom(e agent.Effect, x agent.Settlement) bool {
	if e.Looked != "" || len(e.Trail) == 0 {
		return true
	}
	by := e.Trail[len(e.Trail)-1].By
	return by == x.Approver || by == agent.Who(x.Approver, true)
}

func (o *settleOptions) report(res settling) error {
	a := o.app
	exit := exitOf(res.Result)
	if a.json() {
		if err := a.printJSON(res); err != nil || exit == ExitDone {
			return err
		}
		return &exitError{code: exit}
	}
	switch res.Result {
	case wordRefused:
		return &exitError{exit, fmt.Errorf("refused: %s", line(res.Why, 2000))}
	case wordUnanswered:
		return withHint(&exitError{exit, fmt.Errorf("no word on the settlement within %s; it was sent and may count", o.wait)},
			"see what became of it: holdfast effects show '%s'", line(res.Key, 240))
	}
	state := res.Outcome
	if res.Effect != nil {
		state = res.Effect.State
		a.field("conflict", res.Effect.Conflict)
	}
	_, err := fmt.Fprintf(a.Out, "accepted: %s is %s\n", line(res.Key, 240), line(string(state), 32))
	return err
}

// exitOf is the exit code for the word on what was sent.
func exitOf(result string) int {
	switch result {
	case wordAccepted:
		return ExitDone
	case wordRefused:
		return ExitRefused
	}
	return ExitWaiting
}
