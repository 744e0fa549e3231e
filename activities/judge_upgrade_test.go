package activities

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/policy"
)

func TestADecisionOnAnUpgradeIsJudgedByWhoMayApproveItToday(t *testing.T) {
	t.Parallel()
	bosses := policy.Config{
		AcceptUnsigned: true, Approvers: map[string]policy.Approver{"boss": {}}, Approval: policy.Asking{By: []string{"boss"}},
		Rules: []policy.Rule{{Name: "none", Then: agent.DecisionDeny}}, // about tools
	}
	no := false
	for name, c := range map[string]struct {
		config *policy.Config
		by     string
		choice agent.Choice
		args   string
		at     time.Duration
		want   string
	}{
		"anybody":                        {nil, "alice", agent.ChoiceApprove, "", time.Minute, ""},
		"late":                           {nil, "alice", agent.ChoiceApprove, "", 48 * time.Hour, "late"},
		"who may not any more":           {&bosses, "alice", agent.ChoiceApprove, "", time.Minute, `"alice" is not among those`},
		"who may":                        {&bosses, "boss", agent.ChoiceApprove, "", time.Minute, ""},
		"who declines":                   {&bosses, "boss", agent.ChoiceDecline, "", time.Minute, ""},
		"who sent the message":           {ptrTo(others(&no)), "erin", agent.ChoiceApprove, "", time.Minute, "wants somebody else"},
		"nobody may any more":            {ptrTo(signedOnly(t, &no)), "boss", agent.ChoiceApprove, "", time.Minute, "denies the action (sender-unsigned)"},
		"who edits":                      {nil, "alice", agent.ChoiceApprove, `{"agent":"admin"}`, time.Minute, "cannot be edited"},
		"who edits nothing":              {nil, "alice", agent.ChoiceApprove, "same", time.Minute, "cannot be edited"},
		"who edits into what is no JSON": {nil, "alice", agent.ChoiceApprove, "{", time.Minute, "cannot be edited"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, old := deployed(t)
			w.upgrades(agent.UpgradeAsk)
			w.edit(func(d *agent.Definition) { d.Instructions = "Be vague." })
			opened, err := w.opens(old)
			if err != nil || opened.Offer == nil {
				t.Fatalf("%+v, %v", opened, err)
			}
			place := agent.Place{Turn: 2, Call: 1}
			r := approval.NewRequest(agent.ActionKey(w.scope, place, opened.Offer.Call.Action), 1, place, opened.Offer.Call, noon, "")
			hist := newChronicle(t, w)
			hist.started("run-1", "")
			d := approves(r, c.by)
			d.Choice, d.Args = c.choice, strings.Replace(c.args, "same", r.Args, 1)
			hist.signal(noon.Add(c.at), agent.SignalApproval, d)
			if c.config != nil {
				w.governed(*c.config)
			}
			res := mustLocal[agent.JudgeResult](t, w.Judge, agent.JudgeInput{
				Scope: w.scope, Request: r, Decision: d, Senders: []agent.Actor{{Name: "erin"}}, Definition: opened.Definition.Short(),
				Run: "run-1", Store: w.Store.ID(), Serial: 3,
			})
			if (res.Why == "") != (c.want == "") || !strings.Contains(res.Why, c.want) || res.Edited != nil {
				t.Errorf("%+v, want %q", res, c.want)
			}
		})
	}
}

func ptrTo[T any](v T) *T { return &v }

// signedOnly is a policy by which whoever sent the message may not decide, and takes no name as it is claimed.
func signedOnly(t *testing.T, no *bool) policy.Config {
	t.Helper()
	return policy.Config{SelfApproval: no, Approvers: map[string]policy.Approver{"boss": {Keys: []policy.Key{{Key: sshKey(t).PublicKey()}}}}}
}
