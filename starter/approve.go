package starter

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// decideOptions are what approve, decline and "approvals cancel" have.
type decideOptions struct {
	app    *App
	choice agent.Choice
	signFlags
	digest, reason  string
	edit, editFile  string
	yes, full, mute bool
	wait            time.Duration
}

const signHelp = `
Where policy asks for a signature, sign with --key: an SSH private key, or with its .pub file (or the word agent) the
ssh-agent. A key that is elsewhere signs what --print prints; --signature and --time send what it made.`

func newApprove(a *App) *cobra.Command {
	o := &decideOptions{app: a, choice: agent.ChoiceApprove}
	cmd := &cobra.Command{
		Use:   "approve ID",
		Short: "Approve an action that waits, exactly as it is shown",
		Long: `Shows the exact action that waits, asks for confirmation, sends the approval and says what the turn makes of it. Where
there is no terminal to ask, --digest has to name the action: what is approved is then that action or nothing. ID is the
request's id, the key of its action, or SESSION or SESSION/turn-N where exactly one request waits.

--edit approves other arguments than the model's. They are checked against the tool's schema, and policy decides on them
again; the turn keeps what was proposed and what was approved.
` + signHelp + `

Exit codes: 0 the approval counts (more may be needed), 7 it does not and why is said, 8 no answer within --wait.`,
		Example: `  holdfast approve support-x7k2mq
  holdfast approve 'support-x7k2mq~1a2b3c4d:turn-1/2.1/0123456789abcdef#1' --digest $DIGEST --as alice --key ~/.ssh/id_ed25519
  holdfast approve support-x7k2mq --edit '{"order":"42","amount":20}'
  holdfast approve support-x7k2mq --digest $DIGEST --as alice --print > decision
  ssh-keygen -Y sign -n holdfast-approval -f KEY decision    # makes decision.sig`,
	}
	o.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.edit, "edit", "", "approve with these `arguments` instead: a JSON object")
	f.StringVar(&o.editFile, "edit-file", "", "the same from a `file`, - is stdin")
	completeFiles(cmd, "edit-file")
	f.BoolVarP(&o.yes, "yes", "y", false, "do not ask on a terminal; elsewhere --digest is needed all the same")
	return cmd
}

func newDecline(a *App) *cobra.Command {
	o := &decideOptions{app: a, choice: agent.ChoiceDecline, mute: true}
	cmd := &cobra.Command{
		Use:   "decline ID",
		Short: "Decline an action that waits",
		Long: `Declines an action that waits for approval. The model and the user are told the reason. One decline is enough, however
many people were to approve.
` + signHelp + `

Exit codes: 0 declined, 7 the decision does not count and why is said, 8 no answer within --wait.`,
		Example: `  holdfast decline support-x7k2mq --reason "the order was delivered"`,
	}
	o.add(cmd)
	return cmd
}

func newApprovalsCancel(a *App) *cobra.Command {
	o := &decideOptions{app: a, choice: agent.ChoiceCancel, mute: true}
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Withdraw a request: nobody is to decide it",
		Long: `Withdraws a request for approval, which is neither an approval nor a decline. Those who may decide can do it, and who sent
the turn's message, who has to prove it where policy wants signatures. "holdfast cancel" ends the whole turn without.
` + signHelp + `

Exit codes: 0 withdrawn, 7 the decision does not count and why is said, 8 no answer within --wait.`,
		Example: `  holdfast approvals cancel support-x7k2mq --reason "asked twice"`,
	}
	o.add(cmd)
	return cmd
}

func (o *decideOptions) add(cmd *cobra.Command) {
	cmd.Args = cobra.ExactArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args[0]) }
	cmd.ValidArgsFunction = o.app.completeApprovals
	f := cmd.Flags()
	f.StringVar(&o.digest, "digest", "", "the `digest` of the action meant; if another one waits, nothing is sent")
	f.StringVar(&o.reason, "reason", "", "why; recorded and shown")
	f.BoolVar(&o.full, "full", false, "show long values whole")
	f.DurationVar(&o.wait, "wait", 30*time.Second, "how long to wait for the turn's word")
	o.signFlags.add(cmd)
	_ = cmd.RegisterFlagCompletionFunc("as", o.app.completeApprovers)
}

func (o *decideOptions) run(ctx context.Context, id string) error {
	ref, err := parseApproval(id)
	if err != nil {
		return err
	}
	if err := o.check(); err != nil {
		return err
	}
	args, err := o.edited()
	if err != nil {
		return err
	}
	c, err := o.app.connect(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	f, err := o.find(ctx, c, ref)
	if err != nil {
		return err
	}
	if err := o.confirm(ctx, f, args); err != nil {
		return err
	}
	d, err := o.decision(ctx, f, args)
	if err != nil || o.print {
		return err
	}
	return o.send(ctx, c, f, d)
}

func (o *decideOptions) check() error {
	switch {
	case o.choice == agent.ChoiceDecline && o.reason == "":
		return withHint(usageError("a decline without --reason"), "the model and the user are told why: --reason \"...\"")
	case o.digest != "" && !agent.Digest(o.digest).Valid():
		return usageError("--digest %q: want the whole digest, 64 hexadecimal digits", line(o.digest, 80))
	case o.edit != "" && o.editFile != "":
		return usageError("the arguments are given twice: by --edit and by --edit-file")
	case len(o.reason) > agent.MaxReason:
		return usageError("--reason has %d bytes and may have %d", len(o.reason), agent.MaxReason)
	case o.wait < 0:
		return usageError("--wait %s: want no less than 0", o.wait)
	}
	return o.signFlags.check()
}

// edited returns the arguments as the approver wants them, canonical, or "". They go through history, so they
// have a bound that the model's have not.
func (o *decideOptions) edited() (string, error) {
	text := o.edit
	if o.editFile != "" {
		b, err := o.readEdit()
		if err != nil {
			return "", fmt.Errorf("--edit-file: %w", err)
		}
		text = string(b)
	}
	switch {
	case text == "" && o.editFile != "":
		return "", usageError("--edit-file %q is empty", o.editFile)
	case text == "":
		return "", nil
	case len(text) > agent.MaxDecision/2:
		return "", usageError("the edited arguments have %d bytes and may have %d", len(text), agent.MaxDecision/2)
	}
	canonical, err := approval.Canonical([]byte(text))
	if err != nil {
		return "", withHint(&exitError{ExitUsage, err}, "want a JSON object, such as '{\"order\":\"42\"}'")
	}
	return canonical, nil
}

func (o *decideOptions) readEdit() ([]byte, error) {
	in := o.app.In
	if o.editFile != "-" {
		f, err := os.Open(o.editFile)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	return io.ReadAll(io.LimitReader(in, agent.MaxDecision+1))
}

// find finds the request. With its full id and digest a decision can be sent although no worker answers: it is
// about that action or about nothing.
func (o *decideOptions) find(ctx context.Context, c *conn, ref approvalRef) (*foundApproval, error) {
	f, err := c.findApproval(ctx, ref)
	var silent *silentTurn
	if errors.As(err, &silent) && ref.whole() && o.digest != "" {
		o.app.note("%s %v; the action that the digest names cannot be shown now", o.app.paint(o.app.Err, yellow, "note:"), err)
		return &foundApproval{
			Approval: agent.Approval{ApprovalRequest: agent.ApprovalRequest{ID: agent.ApprovalID(ref.key, ref.ask), Action: agent.Digest(o.digest)}},
			workflow: silent.workflow, scope: ref.scope, unseen: true,
		}, nil
	}
	if silent != nil && o.digest != "" {
		o.app.note("%s with the request's full id, which `holdfast attention` shows, a decision can be sent all the same",
			o.app.paint(o.app.Err, yellow, "note:"))
	}
	if err != nil {
		return nil, o.app.unanswered(ctx, c, err)
	}
	if f.silent != nil {
		o.app.note("%s %s; the request is shown as its history has it, and the decision counts when a worker takes it up",
			o.app.paint(o.app.Err, yellow, "note:"), c.whyNoAnswer(ctx, f.workflow, o.app, f.silent.err).why)
	}
	f.moved = movedText(c.askedElsewhere(ctx, &f))
	return &f, nil
}

// decision makes the decision and signs it; with --print it prints what is to be signed instead.
func (o *decideOptions) decision(ctx context.Context, f *foundApproval, args string) (agent.ApprovalDecision, error) {
	d := agent.ApprovalDecision{
		ID: f.ID, Digest: f.Action, Choice: o.choice, Approver: o.approver(), Reason: o.reason, Args: args,
		Ref: rand.Text(),
	}
	var err error
	if d.Time, err = o.moment(); err != nil {
		return d, err
	}
	b := approval.DecisionBytes(f.scope, d)
	if o.print {
		return d, o.printBytes(b, d)
	}
	d.Signature, err = o.prove(ctx, b)
	return d, err
}
