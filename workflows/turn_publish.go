package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// What a run says about itself in search attributes.
var (
	statusKey    = temporal.NewSearchAttributeKeyKeyword(agent.AttributeStatus)
	agentKey     = temporal.NewSearchAttributeKeyKeyword(agent.AttributeAgent)
	tenantKey    = temporal.NewSearchAttributeKeyKeyword(agent.AttributeTenant)
	attentionKey = temporal.NewSearchAttributeKeyKeyword(agent.AttributeAttention)
	approvalsKey = temporal.NewSearchAttributeKeyInt64(agent.AttributeApprovals)
	expiresKey   = temporal.NewSearchAttributeKeyTime(agent.AttributeExpires)
	uncertainKey = temporal.NewSearchAttributeKeyInt64(agent.AttributeUncertain)
)

// published is what the search attributes say, so that they are written only when that changes: each writing is
// an event.
type published struct {
	Status    agent.Status `json:"status,omitempty"`
	Attention string       `json:"attention,omitempty"`
	Approvals int          `json:"approvals,omitempty"`
	Expires   time.Time    `json:"expires,omitzero"`
	Uncertain int          `json:"uncertain,omitempty"`
}

// updates returns what to write so that the attributes say now what they said before.
func (p published) updates(before published) []temporal.SearchAttributeUpdate {
	var out []temporal.SearchAttributeUpdate
	if p.Status != before.Status {
		out = append(out, statusKey.ValueSet(string(p.Status)))
	}
	if p.Attention != before.Attention {
		out = append(out, setOr(p.Attention != "", attentionKey.ValueSet(p.Attention), attentionKey.ValueUnset()))
	}
	if p.Approvals != before.Approvals {
		out = append(out, setOr(p.Approvals > 0, approvalsKey.ValueSet(int64(p.Approvals)), approvalsKey.ValueUnset()))
	}
	if !p.Expires.Equal(before.Expires) {
		out = append(out, setOr(!p.Expires.IsZero(), expiresKey.ValueSet(p.Expires), expiresKey.ValueUnset()))
	}
	if p.Uncertain != before.Uncertain {
		out = append(out, setOr(p.Uncertain > 0, uncertainKey.ValueSet(int64(p.Uncertain)), uncertainKey.ValueUnset()))
	}
	return out
}

func setOr(set bool, value, unset temporal.SearchAttributeUpdate) temporal.SearchAttributeUpdate {
	if set {
		return value
	}
	return unset
}

// publish shows what the turn is doing: search attributes, for lists, and current details, for a person.
func (t *turn) publish() {
	if t.change >= authority {
		now := t.attributes()
		if updates := now.updates(t.st.Published); len(updates) > 0 {
			t.must(workflow.UpsertTypedSearchAttributes(t.root, updates...))
			t.st.Published = now
		}
	}
	t.show()
}

func (t *turn) attributes() published {
	p := published{Status: t.status}
	if t.status.Final() {
		return p // what is left unresolved, the session lists
	}
	p.Approvals, p.Expires = t.st.Requests.Waiting(), t.st.Requests.Expires()
	p.Uncertain = t.st.Ledger.Uncertain()
	switch {
	case attention(t.st.Ledger.Unresolved()) != "":
		p.Attention = attention(t.st.Ledger.Unresolved())
	case p.Approvals > 0:
		p.Attention = agent.AttentionApproval
	case t.waiting != "":
		p.Attention = agent.AttentionBudget
	}
	return p
}

// attention says what to look at in unresolved effects, the most urgent first.
func attention(unresolved []agent.Effect) string {
	found := ""
	for _, e := range unresolved {
		if e.State == agent.StateUncertain || e.Conflict != "" {
			return agent.AttentionUncertain
		}
		found = agent.AttentionCompensation
	}
	return found
}

// waits counts what waits for people: while anything does, the turn's status says so, and its time does not run.
func (t *turn) waits(n int) {
	before := t.people
	t.people += n
	switch now := workflow.Now(t.root); {
	case before == 0:
		t.status, t.st.WaitingSince = agent.StatusWaiting, now
	case t.people == 0:
		t.status = agent.StatusRunning
		t.st.Waited += agent.Duration(now.Sub(t.st.WaitingSince))
		t.st.WaitingSince = time.Time{}
	}
	t.publish()
}

// waited ends a wait, unless the next run goes on with it: then nothing else is said in between.
func (t *turn) waited(renew bool) {
	if !renew || t.change < crossing {
		t.waits(-1)
	}
}

// setStatus is publish for runs of before the change, which write their status each time.
func (t *turn) setStatus(s agent.Status) {
	t.status = s
	if t.change < authority {
		t.must(workflow.UpsertTypedSearchAttributes(t.root, statusKey.ValueSet(string(s))))
	}
	t.publish()
}

// waitsFor says in words what a turn waits for, "" if it waits for nobody.
func (t *turn) waitsFor() string {
	if t.waiting != "" {
		return t.waiting
	}
	pending := t.st.Requests.Pending()
	switch {
	case len(pending) == 1:
		return fmt.Sprintf("an approval of %s: run holdfast approve %s", pending[0].Tool, pending[0].ID)
	case len(pending) > 1:
		return fmt.Sprintf("%d approvals: run holdfast approvals --session %s", len(pending), t.in.Session)
	case !t.st.HoldUntil.IsZero():
		return fmt.Sprintf("a word on an effect whose outcome is uncertain: run holdfast effects %s", t.in.Session)
	}
	return ""
}
