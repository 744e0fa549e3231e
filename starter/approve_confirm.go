package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval/signature"
)

// confirm shows the request and makes sure that the person means this action. Nothing has been sent yet.
func (o *decideOptions) confirm(ctx context.Context, f *foundApproval, args string) error {
	a := o.app
	if f.unseen {
		return nil
	}
	tty, done := a.terminal()
	defer done()
	asks := o.digest == "" && !o.mute && !o.print && !o.yes
	s := a.sheet(a.Err, o.full)
	if asks && tty != nil {
		s = a.sheet(tty, o.full)
	}
	if !a.quiet || asks {
		s.request(f, time.Now())
		if args != "" {
			s.arguments("you send", args)
		}
	}
	if err := o.decidable(f, args); err != nil {
		return err
	}
	o.warn(f)
	switch {
	case o.digest != "" || o.mute || o.print:
		return nil
	case tty == nil:
		return withHint(usageError("there is no terminal to ask for confirmation, so --digest has to name the action"),
			"if it is the action shown: --digest %s", f.Action)
	case o.yes:
		return nil
	}
	return o.question(ctx, s)
}

func (o *decideOptions) question(ctx context.Context, s *sheet) error {
	hidden := ""
	if s.hidden > 0 {
		hidden = fmt.Sprintf("%s are not shown (--full shows them). ", count(s.hidden, "byte"))
	}
	fmt.Fprintf(s.w, "\n%sApprove this as %s? [y/N] ", hidden, line(o.approver(), 64))
	text, err := readAnswer(ctx, o.app.In, 100)
	if err != nil {
		return err
	}
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "y", "yes":
		return nil
	}
	return withHint(errors.New("not approved: nothing was sent"), "it still waits; decline it with: holdfast decline ID --reason \"...\"")
}

// terminal returns where a person sees the action who can answer at stdin, or nil.
func (a *App) terminal() (w io.Writer, done func()) {
	in, ok := a.In.(*os.File)
	if !ok || !isTerminal(in) {
		return nil, func() {}
	}
	if isTerminal(a.Err) {
		return a.Err, func() {}
	}
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return nil, func() {}
	}
	return tty, func() { _ = tty.Close() }
}

// decidable says why a decision on the request would be in vain or about something else.
func (o *decideOptions) decidable(f *foundApproval, args string) error {
	if _, err := f.distrust(); err != nil {
		return &exitError{ExitRefused, fmt.Errorf("this is no request to decide on: %w; nothing was sent", err)}
	}
	switch {
	case o.digest != "" && agent.Digest(o.digest) != f.Action:
		return withHint(&exitError{ExitRefused, errors.New("the action that waits has another digest; nothing was sent")},
			"look at it: holdfast approvals show '%s'", f.ID)
	case f.Outcome != agent.OutcomePending:
		return &exitError{ExitRefused, fmt.Errorf("it does not wait any more: it is %s; nothing was sent", line(string(f.Outcome), 32))}
	case args != "" && args == f.Args:
		return usageError("the edited arguments are those that wait; approve without --edit")
	}
	return nil
}

// warn says what the turn will hold against the decision, as far as can be seen from here: the turn has the
// word, and policy may have changed.
func (o *decideOptions) warn(f *foundApproval) {
	a, t := o.app, f.Terms
	note := func(format string, args ...any) {
		a.note("%s "+format, append([]any{a.paint(a.Err, yellow, "note:")}, args...)...)
	}
	who := o.approver()
	if t.Signed && !o.signed() && !o.print {
		note("policy asks for a signature here, and there is no --key; the turn may refuse")
	}
	if len(t.By) > 0 && !slices.Contains(t.By, who) && !slices.Contains(t.EscalateTo, who) {
		note("%s is not among those who may decide; say who you are with --as", line(who, 64))
	}
	for _, d := range f.Decisions {
		if d.Approver == who && d.Choice == o.choice {
			note("%s has decided already; what counts is different people", line(who, 64))
		}
	}
}

// printBytes prints what is to be signed, and how to go on.
func (o *decideOptions) printBytes(b []byte, d agent.ApprovalDecision) error {
	a := o.app
	at := d.Time.Format(time.RFC3339Nano)
	if a.json() {
		return a.printJSON(struct {
			Bytes     string       `json:"bytes"`
			Namespace string       `json:"namespace"`
			ID        string       `json:"id"`
			Digest    agent.Digest `json:"digest"`
			Decision  agent.Choice `json:"decision"`
			Approver  string       `json:"approver"`
			Time      string       `json:"time"`
		}{string(b), signature.Namespace, d.ID, d.Digest, d.Choice, d.Approver, at})
	}
	return o.printSigned(a, b, d.Time)
}
