package activities

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/tool"
)

// governed gives the world a policy.
func (w *world) governed(c policy.Config) {
	w.t.Helper()
	p, err := policy.New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	w.snap.Policy = p
}

// local runs a local activity and returns its result.
func local[T any](t *testing.T, fn, in any) (T, error) {
	t.Helper()
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivity(fn)
	var out T
	val, err := env.ExecuteLocalActivity(fn, in)
	if err == nil {
		err = val.Get(&out)
	}
	return out, err
}

func mustLocal[T any](t *testing.T, fn, in any) T {
	t.Helper()
	out, err := local[T](t, fn, in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// limits are the rules of a till: large amounts are denied, middling ones are the bosses', small ones anybody's.
func limits() policy.Config {
	return policy.Config{
		AcceptUnsigned: true, Approvers: map[string]policy.Approver{"boss": {}},
		Rules: []policy.Rule{
			{Name: "too-much", When: "args.amount > 1000", Then: agent.DecisionDeny},
			{Name: "much", When: "args.amount > 100", Then: agent.DecisionAsk, Approval: policy.Asking{By: []string{"boss"}}},
			{Name: "free", When: "args.amount < 5", Then: agent.DecisionAllow},
			{Name: "little", Then: agent.DecisionAsk},
		},
	}
}

func payment(class agent.Class) tool.Spec {
	return tool.Spec{
		Name: "pay", Class: class, Timeout: 10 * time.Second, Resource: "accounts/{to}",
		Parameters: []byte(`{"type":"object","properties":{"amount":{"type":"number"},"to":{"type":"string"}},"required":["amount"],"additionalProperties":false}`),
	}
}

// asks is a world in which a payment waits for an approval from noon on for an hour.
func asks(t *testing.T, args string) (*world, *chronicle, agent.ApprovalRequest) {
	t.Helper()
	w := newWorld(t, "mem://", newFake(t, payment(agent.ClassOnce), nil))
	w.governed(limits())
	c := newChronicle(t, w)
	c.started("run-1", "")
	p := agent.Place{Turn: 1, Step: 2, Call: 3}
	d := &desk{snap: w.snap, def: w.snap.Agents["clerk"], scope: w.scope, place: p}
	call := d.decide(agent.Call{Tool: "pay", Args: args}, p.Call)
	if call.Verdict.Decision != agent.DecisionAsk {
		t.Fatalf("call %+v", call)
	}
	key := agent.ActionKey(w.scope, p, call.Action)
	return w, c, agent.ApprovalRequest{
		ID: agent.ApprovalID(key, 1), Key: key, Ask: 1, Tool: "pay", Args: args, Class: call.Class, Action: call.Action,
		Place: p, Verdict: call.Verdict, Terms: *call.Terms, RequestedAt: noon, ExpiresAt: noon.Add(time.Hour),
	}
}

func (w *world) judged(t *testing.T, r agent.ApprovalRequest, d agent.ApprovalDecision) agent.JudgeResult {
	t.Helper()
	return mustLocal[agent.JudgeResult](t, w.Judge, agent.JudgeInput{
		Scope: w.scope, Request: r, Decision: d, Definition: w.digest().Short(), Run: "run-1", Store: w.Store.ID(), Serial: 2,
	})
}

func approves(r agent.ApprovalRequest, by string) agent.ApprovalDecision {
	return agent.ApprovalDecision{ID: r.ID, Digest: r.Action, Choice: agent.ChoiceApprove, Approver: by}
}

func TestADecisionsTimeIsTheServersWhateverItSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		at     time.Time // when the server took it
		claims time.Time
		want   string
	}{
		{"in time", noon.Add(time.Minute), time.Time{}, ""},
		{"late", noon.Add(61 * time.Minute), time.Time{}, "late"},
		{"late, and says that it was in time", noon.Add(61 * time.Minute), noon.Add(time.Minute), "late"},
		{"in time, and says another time", noon.Add(time.Minute), noon.Add(2 * time.Minute), ""},
	} {
		w, hist, r := asks(t, `{"amount":10,"to":"acme"}`)
		d := approves(r, "alice")
		d.Time = c.claims
		hist.signal(c.at, agent.SignalApproval, d)
		res := w.judged(t, r, d)
		if (res.Why == "") != (c.want == "") || !strings.Contains(res.Why, c.want) || res.Serial != 3 {
			t.Errorf("%s: %+v, want %q", c.name, res, c.want)
		}
		if c.want == "" && (!res.Decided.At.Equal(c.at) || res.Quorum != 1 || !res.Decided.Claimed) {
			t.Errorf("%s: %+v", c.name, res)
		}
	}
}

func TestOfTwoEqualDecisionsTheNewestTimeCounts(t *testing.T) {
	t.Parallel()
	w, hist, r := asks(t, `{"amount":10}`)
	d := approves(r, "alice")
	hist.signal(noon.Add(time.Minute), agent.SignalApproval, d)
	hist.signal(noon.Add(2*time.Hour), agent.SignalApproval, d)
	if res := w.judged(t, r, d); !strings.Contains(res.Why, "late") {
		t.Errorf("%+v", res)
	}
}

func TestADecisionThatTheServerNeverTookIsNotJudged(t *testing.T) {
	t.Parallel()
	w, hist, r := asks(t, `{"amount":10}`)
	other := approves(r, "alice")
	other.Choice = agent.ChoiceDecline
	hist.signal(noon, agent.SignalApproval, other)
	_, err := local[agent.JudgeResult](t, w.Judge, agent.JudgeInput{
		Scope: w.scope, Request: r, Decision: approves(r, "alice"), Definition: w.digest().Short(), Run: "run-1", Serial: 3,
	})
	wantApp(t, err, agent.ErrInternal, false)
}

func TestADecisionIsJudgedByThePolicyInForce(t *testing.T) {
	t.Parallel()
	only := policy.Config{
		AcceptUnsigned: true, Approvers: map[string]policy.Approver{"boss": {}},
		Rules: []policy.Rule{{Name: "bosses", Then: agent.DecisionAsk, Approval: policy.Asking{By: []string{"boss"}, Quorum: 1}}},
	}
	for name, c := range map[string]struct {
		config policy.Config
		by     string
		choice agent.Choice
		want   string
	}{
		"somebody":                    {limits(), "alice", agent.ChoiceApprove, ""},
		"who may not any more":        {only, "alice", agent.ChoiceApprove, "not among those"},
		"who may":                     {only, "boss", agent.ChoiceApprove, ""},
		"nobody: denied now":          {policy.Config{Rules: []policy.Rule{{Name: "closed", Then: agent.DecisionDeny}}}, "alice", agent.ChoiceApprove, "closed"},
		"who declines what is denied": {policy.Config{Rules: []policy.Rule{{Name: "closed", Then: agent.DecisionDeny}}}, "alice", agent.ChoiceDecline, ""},
		"somebody: allowed now":       {policy.Config{Rules: []policy.Rule{{Name: "open", Then: agent.DecisionAllow}}}, "alice", agent.ChoiceApprove, ""},
	} {
		w, hist, r := asks(t, `{"amount":10}`)
		w.governed(c.config)
		d := approves(r, c.by)
		d.Choice = c.choice
		hist.signal(noon.Add(time.Minute), agent.SignalApproval, d)
		if res := w.judged(t, r, d); (res.Why == "") != (c.want == "") || !strings.Contains(res.Why, c.want) {
			t.Errorf("%s: %+v, want %q", name, res, c.want)
		}
	}
}

func TestAnEditIsCanonicalisedValidatedAndDecidedByPolicyAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, args, by string
		edited         string // canonical, "" if nothing comes of it
		want           string // why not
	}{
		{"smaller", ` { "to" : "acme", "amount": 9.50 }`, "alice", `{"amount":9.50,"to":"acme"}`, ""},
		{"a number that no rule can weigh", `{"amount":10.000000000000000000001}`, "alice", "", "policy denies the edited action (too-much)"},
		{"so small that nobody is asked", `{"amount":1}`, "alice", `{"amount":1}`, ""},
		{"the same, written otherwise", `{"to":"acme", "amount":10}`, "alice", "", ""},
		{"of a type that no rule can weigh", `{"amount":"9"}`, "alice", "", "policy denies the edited action (too-much)"},
		{"against the schema", `{"amount":9,"to":7}`, "alice", "", "must be string"},
		{"more than the schema has", `{"amount":9,"iban":"x"}`, "alice", "", "iban"},
		{"no object", `[1]`, "alice", "", "cannot be used"},
		{"not JSON", `{"amount":`, "alice", "", "cannot be used"},
		{"twice the same key", `{"amount":1,"amount":900}`, "alice", "", "cannot be used"},
		{"denied", `{"amount":1001}`, "alice", "", "policy denies the edited action (too-much)"},
		{"more than its approver may approve", `{"amount":500}`, "alice", "", `the edited action: "alice" is not among those`},
		{"as much as its approver may approve", `{"amount":500}`, "boss", `{"amount":500}`, ""},
	} {
		w, hist, r := asks(t, `{"amount":10,"to":"acme"}`)
		d := approves(r, c.by)
		d.Args = c.args
		hist.signal(noon.Add(time.Minute), agent.SignalApproval, d)
		res := w.judged(t, r, d)
		if (res.Why == "") != (c.want == "") || !strings.Contains(res.Why, c.want) {
			t.Errorf("%s: refused with %q, want %q", c.name, res.Why, c.want)
			continue
		}
		if c.edited == "" {
			if res.Edited != nil {
				t.Errorf("%s: edited %+v", c.name, res.Edited)
			}
			continue
		}
		e := res.Edited
		tl, _ := w.snap.Tools.Lookup("pay")
		if e == nil || e.Args != c.edited || e.Action != action(tl.Spec(), c.edited, r.Place).Digest() || e.Action == r.Action || e.Intent == "" || e.Verdict.Policy == "" {
			t.Errorf("%s: edited %+v", c.name, e)
		}
		if res.Decided.Args != c.args || res.Decided.Digest != r.Action {
			t.Errorf("%s: the decision is kept as %+v", c.name, res.Decided)
		}
	}
}

func TestOnlyAnApprovalCanEdit(t *testing.T) {
	t.Parallel()
	w, hist, r := asks(t, `{"amount":10}`)
	d := approves(r, "alice")
	d.Choice = agent.ChoiceDecline
	hist.signal(noon.Add(time.Minute), agent.SignalApproval, d)
	if res := w.judged(t, r, d); res.Why != "" || res.Edited != nil || res.Decided.Choice != agent.ChoiceDecline {
		t.Errorf("%+v", res)
	}
}

func TestAnEditHoldsToWhatItsApproverSawOfTheTarget(t *testing.T) {
	t.Parallel()
	w, hist, r := asks(t, `{"amount":10,"to":"acme"}`)
	seen := &agent.Observation{Digest: agent.DigestOf([]byte("open")), Text: "open", At: noon}
	r.Terms.Observed = seen
	d := approves(r, "alice")
	for args, want := range map[string]*agent.Observation{
		`{"amount":9,"to":"acme"}`:  seen,
		`{"amount":9,"to":"other"}`: nil, // the tool cannot observe
	} {
		d.Args = args
		hist.signal(noon.Add(time.Minute), agent.SignalApproval, d)
		res := w.judged(t, r, d)
		if res.Edited == nil || res.Edited.Terms == nil {
			t.Fatalf("%s: %+v", args, res)
		}
		if diff := cmp.Diff(want, res.Edited.Terms.Observed); diff != "" {
			t.Errorf("%s: observation (-want +got):\n%s", args, diff)
		}
	}
}

// The agent does not list what undoes, and what undoes has one key whatever its arguments.
func TestACompensationIsApprovedAsItIs(t *testing.T) {
	t.Parallel()
	w, hist, r := asks(t, `{"amount":10}`)
	def := w.snap.Agents["clerk"]
	def.Tools = nil
	w.snap.Agents["clerk"] = def
	d := approves(r, "alice")
	hist.signal(noon.Add(time.Minute), agent.SignalApproval, d)
	if res := w.judged(t, r, d); !strings.Contains(res.Why, "not-listed") {
		t.Errorf("the model's own: %+v", res)
	}
	r.Key = agent.UndoKey(r.Key, 1)
	r.ID = agent.ApprovalID(r.Key, 1)
	d.ID = r.ID
	hist.signal(noon.Add(time.Minute), agent.SignalApproval, d)
	if res := w.judged(t, r, d); res.Why != "" {
		t.Errorf("the compensation: %+v", res)
	}
	d.Args = `{"amount":9}`
	hist.signal(noon.Add(time.Minute), agent.SignalApproval, d)
	if res := w.judged(t, r, d); !strings.Contains(res.Why, "cannot be edited") {
		t.Errorf("edited: %+v", res)
	}
}

// An approver edits what they see, and sees the tool as it was when the request was made.
func TestAnEditOfWhatToolWasDeclaredAnewIsRefused(t *testing.T) {
	t.Parallel()
	w, hist, r := asks(t, `{"amount":10,"to":"acme"}`)
	spec := payment(agent.ClassOnce)
	spec.Description = "pays from another account"
	set, err := tool.NewSet(newFake(t, spec, nil))
	if err != nil {
		t.Fatal(err)
	}
	w.snap.Tools = set
	d := approves(r, "alice")
	d.Args = `{"amount":9,"to":"acme"}`
	hist.signal(noon.Add(time.Minute), agent.SignalApproval, d)
	if res := w.judged(t, r, d); !strings.Contains(res.Why, "has changed") {
		t.Errorf("%+v", res)
	}
}

// Others may have to approve it too: they are shown, and compute the digest of, what it is now.
func TestAnEditIntoWhatPolicyAllowsSaysWhatItTouches(t *testing.T) {
	t.Parallel()
	w, hist, r := asks(t, `{"amount":10,"to":"acme"}`)
	r.Terms.Observed = &agent.Observation{Digest: agent.DigestOf([]byte("open"))}
	d := approves(r, "alice")
	d.Args = `{"amount":1,"to":"other"}`
	hist.signal(noon.Add(time.Minute), agent.SignalApproval, d)
	e := w.judged(t, r, d).Edited
	if e == nil || e.Terms == nil || e.Terms.Resource != "accounts/other" || e.Terms.Observed != nil || e.Verdict != r.Verdict {
		t.Errorf("%+v", e)
	}
}
