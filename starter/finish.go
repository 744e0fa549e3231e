package starter

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// A turnEnd is the last object that following a turn prints.
type turnEnd struct {
	Type    string         `json:"type"` // "result"
	Session string         `json:"session"`
	Turn    int            `json:"turn"`
	Status  agent.Status   `json:"status"`
	Waiting string         `json:"waiting,omitempty"` // for what
	Answer  string         `json:"answer,omitempty"`
	Body    *agent.Body    `json:"body,omitempty"` // the whole answer, when Answer is its beginning
	Reason  *agent.Reason  `json:"reason,omitempty"`
	Effects []agent.Effect `json:"effects,omitempty"` // not resolved
	// Approvals are the requests that wait.
	Approvals []agent.Approval `json:"approvals,omitempty"`
	Spent     *agent.Budget    `json:"spent,omitempty"`
	Usage     *agent.Usage     `json:"usage,omitempty"`
	Cursor    cursor           `json:"cursor,omitempty"`
}

func (t *turnLog) summary(session string, at cursor) turnEnd {
	r := turnEnd{Type: "result", Session: session, Turn: t.turn, Status: t.status, Reason: t.reason, Cursor: at}
	if t.waiting && !t.ended {
		r.Status = agent.StatusWaiting
	}
	if t.answer != nil && len(t.answer.Calls) == 0 {
		r.Answer, r.Body = t.answer.Text, t.answer.Body
	}
	if t.result != nil {
		r.Effects, r.Usage = t.result.Effects, &t.result.Usage
		if t.result.Spent != (agent.Budget{}) {
			r.Spent = &t.result.Spent
		}
	}
	if r.Status == agent.StatusWaiting {
		r.Approvals = t.waitingFor()
		for _, e := range t.effects {
			if doubtful(*e) {
				r.Effects = append(r.Effects, *e)
			}
		}
	}
	return r
}

// finish prints the end of a turn and returns it as the command's.
func (p *printer) finish(ctx context.Context, f *follower, log *turnLog) error {
	a, r := p.app, log.summary(f.session, f.at)
	if r.Status == agent.StatusWaiting {
		r.Waiting = f.conn.waitsFor(ctx, agent.TurnID(f.session, log.turn))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.json() {
		if err := a.printJSON(r); err != nil {
			return err
		}
		return statusError(r.Status)
	}
	if r.Answer != "" {
		if err := a.answer(r.Answer); err != nil {
			return err
		}
	}
	if r.Body != nil {
		a.note("this is the beginning of %d bytes; all of it: holdfast transcript %s --turn %d", r.Body.Size, f.session, log.turn)
	}
	for _, e := range r.Effects {
		a.note("%s %s: %s %s", a.paint(a.Err, yellow, "note:"), line(e.Tool, 64), line(string(e.State), 32), line(e.Key, 240))
	}
	if r.Usage != nil {
		a.note("%s", a.paint(a.Err, dim, usageText(*r.Usage)))
	}
	if r.Status == agent.StatusDone {
		return nil
	}
	return p.explainStatus(f, r)
}

// explainStatus says what to do about a turn that is not done.
func (p *printer) explainStatus(f *follower, r turnEnd) error {
	err := &exitError{code: ExitFailed}
	switch r.Status {
	case agent.StatusWaiting:
		err.code = ExitWaiting
		what := "a person"
		if r.Waiting != "" {
			what = withoutCommand(r.Waiting)
		}
		err.err = withHint(fmt.Errorf("turn %d of session %q waits for %s", r.Turn, f.session, line(what, 2*lineLimit)), "%s", r.answers(f.session))
		return err
	case agent.StatusBudget:
		err.code = ExitBudget
		err.err = withHint(fmt.Errorf("turn %d of session %q used up its budget%s", r.Turn, f.session, r.used()),
			"what it did stands; for the next turn to have more: %s", extendCommand(f.session, r.usedUp()))
		return err
	case agent.StatusCancelled:
		err.code = ExitCancelled
		err.err = fmt.Errorf("turn %d of session %q was cancelled", r.Turn, f.session)
		return err
	case agent.StatusFailed:
		reason := "no reason given"
		if r.Reason != nil {
			reason = r.Reason.Type + ": " + r.Reason.Message
		}
		err.err = fmt.Errorf("turn %d of session %q failed: %s", r.Turn, f.session, reason)
		if hint := reasonHint(r.Reason); hint != "" {
			err.err = withHint(err.err, "%s", hint)
		}
		return err
	}
	return nil
}

// answersNamed is how many requests are named one by one.
const answersNamed = 3

// answers names the commands that answer what a turn waits for.
func (r *turnEnd) answers(session string) string {
	var out []string
	for i, a := range r.Approvals {
		if i == answersNamed {
			out = append(out, "see all with `holdfast approvals --session "+session+"`")
			break
		}
		out = append(out, "decide with `"+approveCommand(a.ID)+"` or `"+strings.Replace(approveCommand(a.ID), "approve", "decline", 1)+" --reason '...'`")
	}
	for _, e := range r.Effects {
		if e.State == agent.StateUncertain {
			out = append(out, "find out what became of it, then `"+settleCommand(e.Key)+"`")
		}
	}
	if len(out) == 0 {
		out = append(out, "give it more with `"+extendCommand(session, r.Waiting)+"`")
	}
	return fmt.Sprintf("look at it with `holdfast show %s`; %s; or end it with `holdfast cancel %s`", session, strings.Join(out, "; "), session)
}

// usedUp says what a turn lacked, if that is known.
func (r *turnEnd) usedUp() string {
	if r.Reason == nil {
		return ""
	}
	return r.Reason.Message
}

// used says what a turn has used up.
func (r *turnEnd) used() string {
	text := ""
	if r.Reason != nil {
		text = ": " + line(r.Reason.Message, 2*lineLimit)
	}
	if r.Spent != nil {
		text += "; spent " + budgetText(*r.Spent)
	}
	return text
}

func reasonHint(r *agent.Reason) string {
	if r == nil {
		return ""
	}
	switch r.Type {
	case agent.ErrAuthentication:
		return "the model server refuses the key: see the model's key in the worker's holdfast.yaml"
	case agent.ErrQuota:
		return "the account at the model's provider has no credit left"
	case agent.ErrUnknownAgent:
		return "the agents are those of the worker's holdfast.yaml: holdfast config check"
	case agent.ErrContextLength:
		return "start a new session, or give the agent a model with a longer context"
	}
	return ""
}

// interrupted says how to go on with a following that ended early.
func (p *printer) interrupted(ctx context.Context, f *follower, err error) error {
	if ctx.Err() == nil {
		return err
	}
	next := "holdfast watch " + f.session
	if len(f.at) > 0 {
		next += " --from " + f.at.String()
	}
	p.app.leave("\nthe turn goes on without this command; follow it again: %s", next)
	return err
}
