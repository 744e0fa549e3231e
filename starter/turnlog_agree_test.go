package starter

import (
	"context"
	"fmt"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/agent"
)

// agree SESSION/turn-N... checks that the history, read by itself, tells of a turn's effects and approvals what the
// turn says of them.
func agree(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: agree SESSION/turn-N...")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dialed, err := client.Dial(client.Options{HostPort: ts.Getenv("TEMPORAL_ADDRESS")})
	ts.Check(err)
	c := &conn{Client: dialed, namespace: client.DefaultNamespace, payloads: converter.GetDefaultDataConverter()}
	defer c.Close()
	for _, arg := range args {
		at, err := parseAddress(arg)
		ts.Check(err)
		f := newFinder(c, nil)
		own, read := &ledger{at: at}, &ledger{at: at}
		if !f.answers(ctx, own, "") {
			ts.Fatalf("%s does not answer", at)
		}
		ts.Check(f.history(ctx, read))
		if diff := cmp.Diff(own.outline(), read.outline()); diff != "" {
			ts.Fatalf("%s: the turn (-) and its history (+) disagree:\n%s", at, diff)
		}
	}
}

// outline is what has to be equal whoever tells it.
func (l *ledger) outline() map[string]string {
	out := map[string]string{}
	for _, e := range l.effects {
		text := fmt.Sprintf("%s %s %s approval %s undoes %s cancel %s evidence %s:", e.Tool, e.Class, e.Verdict.Rule, e.Approval, e.Undoes, e.Cancel, e.Evidence)
		for _, s := range e.Trail {
			text += fmt.Sprintf(" %s by %q", s.State, s.By)
		}
		out[e.Key] = text
	}
	for _, a := range l.approvals {
		text := fmt.Sprintf("%s %s %s %s proposed %s:", a.Outcome, a.Action, a.Verdict.Rule, a.Args, a.ProposedArgs)
		for _, d := range a.Decisions {
			text += fmt.Sprintf(" %s %s", d.Choice, agent.Who(d.Approver, d.Claimed))
		}
		out[a.ID] = text
	}
	return out
}
