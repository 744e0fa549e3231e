package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

// A till is a world whose effects can be undone, or not: pay by refund, which the agent does not list; wire by
// nothing; note has no word on it.
type till struct {
	*world
	hist   *chronicle
	refund *fake
	step   int
}

func newTill(t *testing.T, url string, then agent.Unwinding) *till {
	t.Helper()
	named := func(name string, change func(*tool.Spec), do doFunc) *fake {
		s := tool.Spec{Name: name, Class: agent.ClassOnce, Timeout: 10 * time.Second}
		change(&s)
		return newFake(t, s, do)
	}
	pay := named("pay", func(s *tool.Spec) {
		s.Compensate = &tool.Compensation{Tool: "refund", Args: map[string]string{"amount": "args.amount", "id": "result.id"}}
	}, func(_ context.Context, c tool.Call) (tool.Result, error) {
		return tool.Result{Data: []byte(`{"id":"` + c.Key + `"}`), Type: "application/json"}, nil
	})
	refund := named("refund", func(s *tool.Spec) {
		s.Parameters = json.RawMessage(`{"type":"object","properties":{"amount":{"type":"number","exclusiveMinimum":0},"id":{"type":"string"}},"required":["amount","id"],"additionalProperties":false}`)
		s.Resource = "payments/{id}"
	}, nil)
	wire := named("wire", func(s *tool.Spec) { s.Irreversible = true }, nil)
	note := named("note", func(*tool.Spec) {}, nil)
	w := newWorld(t, url, pay, refund, wire, note)
	def := w.snap.Agents["clerk"]
	def.Tools = append(def.Tools[:1:1], def.Tools[2:]...)
	w.snap.Agents["clerk"] = def
	p := &till{world: w, hist: newChronicle(t, w), refund: refund}
	p.hist.started("run-1", "")
	p.rules(then, agent.DecisionAllow)
	return p
}

// rules gives the till a policy that lets everything pass but refunds.
func (p *till) rules(then agent.Unwinding, refund agent.Decision) {
	p.governed(policy.Config{
		OnFailure: then, AcceptUnsigned: true, Approvers: map[string]policy.Approver{"boss": {}},
		Approval: policy.Asking{By: []string{"boss"}},
		Rights:   policy.Rights{Compensate: []string{"boss"}},
		Rules: []policy.Rule{
			{Name: "refunds", When: `tool == "refund"`, Then: refund},
			{Name: "rest", Then: agent.DecisionAllow},
		},
	})
}

// does commits an effect in turn 1 and returns it as the ledger has it.
func (p *till) does(name, args string) agent.Effect {
	p.t.Helper()
	p.step++
	in := p.asked(name, args)
	in.Place = agent.Place{Turn: 1, Step: p.step, Call: 1}
	tl, _ := p.snap.Tools.Lookup(name)
	in.Action = action(tl.Spec(), args, in.Place).Digest()
	wantState(p.t, p.mustAttempt(1, in), agent.StateCommitted)
	return agent.Effect{Key: keyOf(in), Tool: name, Place: in.Place, Class: in.Class, State: agent.StateCommitted, Action: in.Action, Attempt: 1}
}

func (p *till) plans(in agent.PlanInput) agent.PlanResult {
	p.t.Helper()
	in.Scope, in.Definition, in.Store, in.Serial = p.scope, p.digest().Short(), p.Store.ID(), 2
	return mustLocal[agent.PlanResult](p.t, p.Plan, in)
}

// orders makes the boss's order to compensate turn 1 arrive at noon.
func (p *till) orders(by string, keys ...string) agent.PlanInput {
	p.t.Helper()
	c := agent.Compensate{Turn: 1, Keys: keys, Approver: by}
	p.hist.signal(noon, agent.SignalCompensate, c)
	return agent.PlanInput{Command: &c, Of: 1, Run: "of another workflow"}
}

// closes writes a closing record of turn 1.
func (p *till) closes(undo int, ledger ...agent.Effect) {
	p.t.Helper()
	mustLocal[agent.CloseResult](p.t, p.Close, agent.CloseInput{
		Scope: p.scope, Turn: 1, Agent: "clerk", Undo: undo, Ledger: ledger, Result: agent.TurnResult{Status: agent.StatusFailed},
	})
}

func keysOf(undos []agent.Undo) (out []string) {
	for _, u := range undos {
		out = append(out, u.Effect.Key)
	}
	return out
}

func TestAPlanRunsNewestFirstFromTheRecordsWithNumbersAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		p := newTill(t, url, agent.UnwindCompensate)
		first := p.does("pay", `{"amount":9007199254740993.10}`)
		note := p.does("note", `{}`)
		wire := p.does("wire", `{}`)
		second := p.does("pay", `{"amount":1E2,"x":1}`)
		res := p.plans(agent.PlanInput{Effects: []agent.Effect{first, note, wire, second}})
		if diff := cmp.Diff([]string{second.Key, wire.Key, first.Key}, keysOf(res.Undos)); diff != "" || res.Then != agent.UnwindCompensate || res.Serial != 3 {
			t.Fatalf("plan %+v (-want +got):\n%s", res, diff)
		}
		if u := res.Undos[1]; !u.Irreversible || u.Call.Tool != "" {
			t.Errorf("wire: %+v", u)
		}
		for i, want := range map[int]string{
			0: `{"amount":1E2,"id":"` + second.Key + `"}`,
			2: `{"amount":9007199254740993.10,"id":"` + first.Key + `"}`,
		} {
			u := res.Undos[i]
			if u.Call.Args != want || u.Call.Trouble != "" || u.Call.Tool != "refund" || u.Call.Verdict.Decision != agent.DecisionAllow {
				t.Errorf("call %+v, want args %s", u.Call, want)
			}
			if u.Call.Action != action(p.refund.spec, want, u.Effect.Place).Digest() || u.Call.Class != agent.ClassOnce || u.Call.Intent == "" || u.Call.Summary == "" {
				t.Errorf("call %+v is not the action at the effect's place", u.Call)
			}
		}
		if p.refund.count() != 0 {
			t.Error("a plan ran something")
		}
	}
}

func TestWhatPolicySaysOfACompensation(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		then   agent.Unwinding
		rule   agent.Decision
		want   agent.Decision
		named  string
		denied bool
	}{
		{agent.UnwindCompensate, agent.DecisionAllow, agent.DecisionAllow, "refunds", false},
		{agent.UnwindCompensate, agent.DecisionAsk, agent.DecisionAllow, ruleOnFailure, false},
		{agent.UnwindCompensate, agent.DecisionDeny, agent.DecisionDeny, "refunds", true},
		{agent.UnwindAsk, agent.DecisionAllow, agent.DecisionAsk, ruleOnFailure, false},
		{agent.UnwindAsk, agent.DecisionAsk, agent.DecisionAsk, "refunds", false},
		{agent.UnwindAsk, agent.DecisionDeny, agent.DecisionDeny, "refunds", true},
	} {
		p := newTill(t, "mem://", c.then)
		e := p.does("pay", `{"amount":1}`)
		p.rules(c.then, c.rule)
		res := p.plans(agent.PlanInput{Effects: []agent.Effect{e}})
		if len(res.Undos) != 1 || res.Then != c.then {
			t.Fatalf("%+v: %+v", c, res)
		}
		u := res.Undos[0].Call
		if u.Verdict.Decision != c.want || u.Verdict.Rule != c.named || (u.Trouble != "") != c.denied {
			t.Errorf("%+v: call %+v", c, u)
		}
		if asks := c.want == agent.DecisionAsk; asks != (u.Terms != nil) || asks && (cmp.Diff([]string{"boss"}, u.Terms.By) != "" ||
			u.Terms.Resource != "payments/"+e.Key || u.Terms.Version != p.refund.spec.Version) {
			t.Errorf("%+v: terms %+v", c, u.Terms)
		}
	}
}

func TestNothingIsPlannedWherePolicyKeeps(t *testing.T) {
	t.Parallel()
	p := newTill(t, "mem://", agent.UnwindKeep)
	if res := p.plans(agent.PlanInput{Effects: []agent.Effect{p.does("pay", `{"amount":1}`)}}); res.Then != agent.UnwindKeep || len(res.Undos) != 0 {
		t.Errorf("%+v", res)
	}
}

func TestACompensationThatCannotBeMadeSaysWhy(t *testing.T) {
	t.Parallel()
	p := newTill(t, "mem://", agent.UnwindCompensate)
	unfit := p.does("pay", `{"amount":0}`)  // the compensating tool does not take it
	missing := p.does("pay", `{"total":1}`) // what the compensation follows from is not there
	unknown := unfit                        // of which there are no records
	unknown.Key = strings.TrimSuffix(unfit.Key, unfit.Key[len(unfit.Key)-16:]) + "0123456789abcdef"
	gone := unfit
	gone.Tool = "gone"
	for want, e := range map[string]agent.Effect{
		"amount":             unfit,
		"cannot be made":     missing,
		"was sent cannot be": unknown,
		`no tool "gone"`:     gone,
	} {
		res := p.plans(agent.PlanInput{Effects: []agent.Effect{e}})
		if len(res.Undos) != 1 || !strings.Contains(res.Undos[0].Call.Trouble, want) {
			t.Errorf("%+v, want %q", res, want)
		}
	}
}

func TestALongResultIsReadWholeForACompensation(t *testing.T) {
	t.Parallel()
	p := newTill(t, "mem://", agent.UnwindCompensate)
	e := p.does("pay", `{"amount":1}`)
	rec, err := p.space().Result(t.Context(), e.Key)
	if err != nil {
		t.Fatal(err)
	}
	// The same effect with a result that is a body of its own.
	long := `{"filler":"` + strings.Repeat("x", agent.InlineText) + `","id":"the-end"}`
	body, err := p.space().PutBody(t.Context(), []byte(long), "application/json")
	if err != nil {
		t.Fatal(err)
	}
	rec.Tool.Text, rec.Tool.Body = long[:40], &body
	other := agent.Effect{Key: e.Key[:len(e.Key)-16] + "0123456789abcdef", Tool: "pay", Place: e.Place, State: agent.StateCommitted}
	if _, _, err := p.space().CreateResult(t.Context(), store.Result{Key: other.Key, Tool: rec.Tool}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := p.space().CreateDispatch(t.Context(), store.Dispatch{Key: other.Key, Token: "t", Tool: "pay", Args: `{"amount":1}`}); err != nil {
		t.Fatal(err)
	}
	if res := p.plans(agent.PlanInput{Effects: []agent.Effect{other}}); len(res.Undos) != 1 || res.Undos[0].Call.Args != `{"amount":1,"id":"the-end"}` {
		t.Errorf("%+v", res)
	}
}

func TestAnOrderTakesWhatTheTurnsRecordsSay(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"mem://", "file://" + t.TempDir()} {
		p := newTill(t, url, agent.UnwindKeep)
		kept, doubted, folded, undone := p.does("pay", `{"amount":1}`), p.does("pay", `{"amount":2}`), p.does("pay", `{"amount":3}`), p.does("pay", `{"amount":4}`)
		in := p.orders("boss")
		if res := p.plans(in); !strings.Contains(res.Why, "has not ended") {
			t.Fatalf("before its end: %+v", res)
		}
		wasDoubted, compensated := doubted, undone
		wasDoubted.State = agent.StateUncertain // and has a record by now
		compensated.State, compensated.Undone = agent.StateCompensated, 1
		p.closes(0, kept, wasDoubted, undone) // the third is only counted
		p.closes(2, compensated)
		res := p.plans(in)
		if diff := cmp.Diff([]string{folded.Key, doubted.Key, kept.Key}, keysOf(res.Undos)); diff != "" || res.Then != agent.UnwindCompensate {
			t.Errorf("plan %+v (-want +got):\n%s", res, diff)
		}
		res = p.plans(p.orders("boss", kept.Key))
		if diff := cmp.Diff([]string{kept.Key}, keysOf(res.Undos)); diff != "" {
			t.Errorf("one key (-want +got):\n%s", diff)
		}
		if res := p.plans(p.orders("boss", kept.Key, undone.Key)); !strings.Contains(res.Why, "no effect") || len(res.Undos) != 0 {
			t.Errorf("what is undone already: %+v", res)
		}
	}
}

func TestAnOrderThatDoesNotCountPlansNothing(t *testing.T) {
	t.Parallel()
	p := newTill(t, "mem://", agent.UnwindCompensate)
	p.closes(0, p.does("pay", `{"amount":1}`))
	if res := p.plans(p.orders("eve")); !strings.Contains(res.Why, "not among those") || len(res.Undos) != 0 {
		t.Errorf("by somebody: %+v", res)
	}
	in := p.orders("boss")
	in.Of = 2
	if res := p.plans(in); !strings.Contains(res.Why, "not for turn 2") {
		t.Errorf("of another turn: %+v", res)
	}
	// Never sent: the order stands in no history.
	in.Of, in.Command = 1, &agent.Compensate{Turn: 1, Approver: "boss", Reason: "made up"}
	in.Scope, in.Definition = p.scope, p.digest().Short()
	_, err := local[agent.PlanResult](t, p.Plan, in)
	wantApp(t, err, agent.ErrInternal, false)
}

func TestACompensationIsNotRunTwiceWhoeverLostItsRecord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		result *agent.ToolResult // of the first compensation
		revoke bool
		want   string // trouble
		undone int
		gone   bool // from the plan
		late   agent.State
	}{
		{name: "committed", result: &agent.ToolResult{State: agent.StateCommitted}, gone: true},
		{name: "failed", result: &agent.ToolResult{State: agent.StateFailed}, undone: 1},
		{name: "never sent", revoke: true, undone: 1},
		{name: "nobody knows", want: "settle", undone: 1},
		{name: "failed, and then it was done", result: &agent.ToolResult{State: agent.StateFailed}, late: agent.StateCommitted, want: "saw committed", undone: 1},
	} {
		p := newTill(t, "mem://", agent.UnwindKeep)
		e := p.does("pay", `{"amount":1}`)
		p.closes(0, e)
		undo := agent.UndoKey(e.Key, 1)
		if _, _, err := p.space().CreateDispatch(t.Context(), store.Dispatch{Key: undo, Token: "t", Tool: "refund", Undoes: e.Key, Revoked: c.revoke}); err != nil {
			t.Fatal(err)
		}
		if c.result != nil {
			if _, _, err := p.space().CreateResult(t.Context(), store.Result{Key: undo, Tool: c.result}); err != nil {
				t.Fatal(err)
			}
		}
		if c.late != "" {
			p.contradict(undo, c.late)
		}
		res := p.plans(p.orders("boss"))
		if c.gone {
			if len(res.Undos) != 0 || res.Why != "" {
				t.Errorf("%s: %+v", c.name, res)
			}
			continue
		}
		if len(res.Undos) != 1 || res.Undos[0].Effect.Undone != c.undone || (res.Undos[0].Call.Trouble != "") != (c.want != "") || !strings.Contains(res.Undos[0].Call.Trouble, c.want) {
			t.Errorf("%s: %+v", c.name, res)
		}
	}
}

func TestATurnThatDidMoreThanItsLedgerListsIsUndoneWhole(t *testing.T) {
	t.Parallel()
	p := newTill(t, "mem://", agent.UnwindCompensate)
	var all []agent.Effect
	for i := range 3 {
		all = append(all, p.does("pay", fmt.Sprintf(`{"amount":%d}`, i+1)))
	}
	pl := &planner{
		Activities: p.Activities, snap: p.snap, def: p.snap.Agents["clerk"], space: p.space(), then: agent.UnwindCompensate,
		in: agent.PlanInput{Scope: p.scope, Effects: all[2:], Folded: true},
	}
	todo, err := pl.recorded(t.Context(), 1, map[string]agent.Effect{all[2].Key: all[2]})
	var got []string
	for _, d := range todo {
		got = append(got, d.effect.Key)
	}
	if diff := cmp.Diff([]string{all[0].Key, all[1].Key, all[2].Key}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Where policy asks about each compensation, the approval must hold when it is sent, also where the rules would allow it.
func TestAnApprovedCompensationIsNotSentWhenItsApproverLostTheRight(t *testing.T) {
	t.Parallel()
	p := newTill(t, "mem://", agent.UnwindAsk)
	e := p.does("pay", `{"amount":5}`)
	undos := p.plans(agent.PlanInput{Effects: []agent.Effect{e}}).Undos
	if len(undos) != 1 || undos[0].Call.Verdict.Decision != agent.DecisionAsk {
		t.Fatalf("%+v", undos)
	}
	c := undos[0].Call
	in := granted(agent.ToolInput{
		Scope: p.scope, Place: e.Place, Definition: p.digest().Short(), Tool: c.Tool, Args: c.Args, Class: c.Class, Action: c.Action,
		Undoes: e.Key, Undo: 1, Store: p.Store.ID(), Serial: 3,
	}, "")
	in.Grant.Terms = *c.Terms
	res := p.mustAttempt(1, in) // alice is not the boss
	wantState(t, res, agent.StateVoid)
	if p.refund.count() != 0 || res.Terms == nil {
		t.Errorf("sent %d times, %+v", p.refund.count(), res)
	}
	in.Grant.Decisions[0].Approver = "boss"
	wantState(t, p.mustAttempt(1, in), agent.StateCommitted)
}
