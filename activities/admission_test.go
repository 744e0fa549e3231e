package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

func newPolicy(t *testing.T, c policy.Config) *policy.Policy {
	t.Helper()
	p, err := policy.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// saying is a policy with one rule.
func saying(t *testing.T, d agent.Decision) *policy.Policy {
	t.Helper()
	return newPolicy(t, policy.Config{Rules: []policy.Rule{{Name: "one", Then: d}}})
}

// onlyBob is a policy by which alice may not approve any more.
func onlyBob(t *testing.T) *policy.Policy {
	t.Helper()
	return newPolicy(t, policy.Config{
		AcceptUnsigned: true, Approvers: map[string]policy.Approver{"bob": {}},
		Rules: []policy.Rule{{Name: "one", Then: agent.DecisionAsk, Approval: policy.Asking{By: []string{"bob"}}}},
	})
}

// granted gives an action alice's approval of what she saw.
func granted(in agent.ToolInput, saw string) agent.ToolInput {
	id := agent.ApprovalID(in.Key(), 1)
	g := agent.Grant{ID: id, Action: in.Action, Requested: now().Add(-time.Minute), Expires: now().Add(time.Hour)}
	g.Terms = agent.Terms{Quorum: 1, Expires: agent.Duration(time.Hour)}
	if saw != "" {
		g.Terms.Observed = &agent.Observation{Digest: agent.DigestOf([]byte(saw)), Text: saw}
	}
	g.Decisions = []agent.Decided{{
		ApprovalDecision: agent.ApprovalDecision{ID: id, Digest: in.Action, Choice: agent.ChoiceApprove, Approver: "alice"},
		At:               now().Add(-30 * time.Second), Claimed: true,
	}}
	in.Grant = &g
	return in
}

// An authority is how things stand when an attempt begins.
type authority struct {
	name   string
	policy func(*testing.T) *policy.Policy
	grant  bool
	drift  bool
}

// authorities are in the order of the table's columns.
var authorities = []authority{
	{"policy allows", func(t *testing.T) *policy.Policy { return saying(t, agent.DecisionAllow) }, false, false},
	{"policy asks now", func(t *testing.T) *policy.Policy { return saying(t, agent.DecisionAsk) }, false, false},
	{"policy denies", func(t *testing.T) *policy.Policy { return saying(t, agent.DecisionDeny) }, false, false},
	{"granted", func(t *testing.T) *policy.Policy { return saying(t, agent.DecisionAsk) }, true, false},
	{"approver revoked", onlyBob, true, false},
	{"target drifted", func(t *testing.T) *policy.Policy { return saying(t, agent.DecisionAsk) }, true, true},
}

// What an attempt finds, by class and by what the destination says of it where it can be asked. Each row has the
// outcome for each authority; "+" says that the attempt sent.
var admissions = []struct {
	found string // in the store
	class agent.Class
	says  tool.Finding
	want  string
}{
	{"nothing", agent.ClassOnce, "", "committed+ void denied committed+ void void"},
	{"nothing", agent.ClassIdempotent, "", "committed+ void denied committed+ void void"},
	{"nothing", agent.ClassReconcilable, tool.Unknown, "committed+ void denied committed+ void void"},

	{"its own claim", agent.ClassOnce, "", "committed+ void denied committed+ void void"},
	{"its own claim", agent.ClassIdempotent, "", "committed+ void denied committed+ void void"},
	{"its own claim", agent.ClassReconcilable, tool.Unknown, "committed+ void denied committed+ void void"},

	{"a dispatch", agent.ClassOnce, "", "uncertain uncertain uncertain uncertain uncertain uncertain"},
	{"a dispatch", agent.ClassIdempotent, "", "committed+ uncertain uncertain committed+ uncertain committed+"},
	{"a dispatch", agent.ClassReconcilable, tool.Unknown, "uncertain uncertain uncertain uncertain uncertain uncertain"},
	{"a dispatch", agent.ClassReconcilable, tool.Found, "committed committed committed committed committed committed"},
	{"a dispatch", agent.ClassReconcilable, tool.Absent, "committed+ void failed committed+ void void"},

	{"a dispatch after the window", agent.ClassIdempotent, "", "uncertain uncertain uncertain uncertain uncertain uncertain"},
	{"a dispatch after the window", agent.ClassIdempotent, tool.Unknown, "uncertain uncertain uncertain uncertain uncertain uncertain"},
	{"a dispatch after the window", agent.ClassIdempotent, tool.Found, "committed committed committed committed committed committed"},
	{"a dispatch after the window", agent.ClassIdempotent, tool.Absent, "committed+ void failed committed+ void void"},
	{"a dispatch", agent.ClassOnce, tool.Found, "committed committed committed committed committed committed"},
	{"a dispatch", agent.ClassOnce, tool.Absent, "failed failed failed failed failed failed"},

	{"a commit", agent.ClassOnce, "", "committed committed committed committed committed committed"},
	{"a commit", agent.ClassIdempotent, "", "committed committed committed committed committed committed"},
	{"a commit", agent.ClassReconcilable, tool.Absent, "committed committed committed committed committed committed"},
	{"a failure", agent.ClassOnce, "", "failed failed failed failed failed failed"},
	{"a failure", agent.ClassIdempotent, "", "failed failed failed failed failed failed"},
	{"a failure", agent.ClassReconcilable, tool.Found, "failed failed failed failed failed failed"},

	{"a revocation", agent.ClassOnce, "", "cancelled cancelled denied cancelled cancelled cancelled"},
	{"a revocation", agent.ClassIdempotent, "", "cancelled cancelled denied cancelled cancelled cancelled"},
	{"a revocation", agent.ClassReconcilable, tool.Found, "cancelled cancelled denied cancelled cancelled cancelled"},

	{"damage", agent.ClassOnce, "", "uncertain uncertain uncertain uncertain uncertain uncertain"},
	{"damage", agent.ClassIdempotent, "", "uncertain uncertain uncertain uncertain uncertain uncertain"},
	{"damage", agent.ClassReconcilable, tool.Unknown, "uncertain uncertain uncertain uncertain uncertain uncertain"},
	{"damage", agent.ClassReconcilable, tool.Found, "committed committed committed committed committed committed"},
	{"damage", agent.ClassReconcilable, tool.Absent, "committed+ void failed committed+ void void"},
}

func TestWhatAnAttemptFindsAndWhatAuthoritySaysDecideTogether(t *testing.T) {
	t.Parallel()
	for _, row := range admissions {
		want := strings.Fields(row.want)
		for i, auth := range authorities {
			name := fmt.Sprintf("%s of %s %s, %s", row.found, row.class, row.says, auth.name)
			t.Run(name, func(t *testing.T) {
				bubble(t, func(t *testing.T) { admit(t, row.found, row.class, row.says, auth, want[i]) })
			})
		}
	}
}

func admit(t *testing.T, found string, class agent.Class, says tool.Finding, auth authority, want string) {
	t.Helper()
	s := spec(class)
	if says != "" {
		s.AbsentAfter = time.Minute
	}
	f := newFake(t, s, nil)
	saw := "open"
	f.sees = func() (string, error) { return saw, nil }
	if says != "" {
		f.finds = finds(says)
	}
	w := newWorld(t, "mem://", f)
	w.snap.Policy = auth.policy(t)
	in := w.asked("pay", `{"to":"acme"}`)
	if auth.grant {
		in = granted(in, saw)
	}
	if auth.drift {
		saw = "closed"
	}
	leaveBehind(t, w, in, found)
	began, asked := time.Now(), f.count()
	res := w.mustAttempt(2, in)
	got := string(res.State)
	if f.count() > asked {
		got += "+"
	}
	if got != want {
		t.Errorf("%s (%s), want %s", got, res.Note, want)
	}
	if res.State == agent.StateVoid {
		fresh(t, res, saw)
		mayHaveSent(t, w, in, says, began)
	}
	if strings.HasPrefix(want, "committed") || want == "failed" {
		if !w.recorded(in.Key()) {
			t.Error("its outcome has no record")
		}
	}
}

// mayHaveSent holds a void result to this: what has a dispatch record is never voided, unless the destination was
// asked after the last moment of sending and its own delay, and had nothing of it.
func mayHaveSent(t *testing.T, w *world, in agent.ToolInput, says tool.Finding, began time.Time) {
	t.Helper()
	d, err := w.space().Dispatch(t.Context(), in.Key())
	sendBy := d.SendBy
	switch {
	case errors.Is(err, store.ErrAbsent):
		return
	case err != nil: // whoever wrote it had done so before
		sendBy = began.Add(maxSendBy)
	}
	if says != tool.Absent || !time.Now().After(sendBy.Add(time.Minute)) {
		t.Errorf("void at %s, and yet there is the dispatch record %+v", time.Now(), d)
	}
}

// fresh holds a void result to what the next ask takes.
func fresh(t *testing.T, res agent.ToolResult, saw string) {
	t.Helper()
	switch {
	case res.Verdict == nil || res.Verdict.Decision != agent.DecisionAsk || res.Terms == nil:
		t.Fatalf("void without policy's word: %+v", res)
	case res.Terms.Observed == nil || res.Terms.Observed.Digest != agent.DigestOf([]byte(saw)):
		t.Errorf("void without the state of the target now: %+v", res.Terms.Observed)
	case res.Note == "" || res.Attempt != 0 || !res.Terms.Version.Valid():
		t.Errorf("void: %+v, %+v", res, res.Terms)
	}
}

// leaveBehind puts into the store what an earlier attempt left that was killed.
func leaveBehind(t *testing.T, w *world, in agent.ToolInput, what string) {
	t.Helper()
	tl, _ := w.snap.Tools.Lookup(in.Tool)
	wanted, err := intent(tl.Spec(), in.Args)
	if err != nil {
		t.Fatal(err)
	}
	if what != "nothing" {
		if _, err := w.claims(in.Scope, in.Root).CreateIntent(t.Context(), wanted, 1, in.Key()); err != nil {
			t.Fatal(err)
		}
	}
	switch what {
	case "nothing", "its own claim":
	case "a dispatch after the window":
		w.dispatch(in, now().Add(-48*time.Hour))
	case "a revocation":
		_, _, err = w.Store.Space(in.Scope).CreateDispatch(t.Context(), claimOf(in.Key(), 1, in.Class, in.Action))
	case "damage":
		_, _, err = w.Store.Space(in.Scope).Create(t.Context(), store.KindDispatches, in.Key(), []byte("{"))
	default:
		w.dispatch(in, now())
	}
	state := map[string]agent.State{"a commit": agent.StateCommitted, "a failure": agent.StateFailed}[what]
	if err == nil && state != "" {
		_, _, err = w.Store.Space(in.Scope).CreateResult(t.Context(), store.Result{Key: in.Key(), Tool: &agent.ToolResult{State: state, Attempt: 1}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAnApprovalThatIsOverOrOfAnotherActionIsVoid(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, spoil := range map[string]func(*agent.ToolInput){
			"expired":        func(in *agent.ToolInput) { in.Grant.Expires = now().Add(-time.Second) },
			"another action": func(in *agent.ToolInput) { in.Grant.Action = agent.DigestOf([]byte("other")) },
			"another key":    func(in *agent.ToolInput) { in.Grant.ID = "s1~00000000:turn-9/1.1/0000000000000000#1" },
			"edited into something else": func(in *agent.ToolInput) {
				in.Grant.Decisions[0].Args = `{"to":"mallory"}`
			},
			"declined":     func(in *agent.ToolInput) { in.Grant.Decisions[0].Choice = agent.ChoiceDecline },
			"no decisions": func(in *agent.ToolInput) { in.Grant.Decisions = nil },
		} {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			w.snap.Policy = saying(t, agent.DecisionAsk)
			in := granted(w.asked("pay", `{"to":"acme"}`), "")
			spoil(&in)
			res := w.mustAttempt(1, in)
			if res.State != agent.StateVoid || f.count() != 0 {
				t.Errorf("%s: %s, sent %d times", name, res.State, f.count())
			}
			// The next ask is for the same key.
			next := granted(in, "")
			if res := w.mustAttempt(1, next); res.State != agent.StateCommitted {
				t.Errorf("%s: after the next approval %s (%s)", name, res.State, res.Note)
			}
		}
	})
}

func TestATargetThatCannotBeLookedAtIsLookedAtAgainBeforePeopleAre(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		looks := 0
		f.sees = func() (string, error) { looks++; return "", fmt.Errorf("status 503 %s", hush) }
		w := newWorld(t, "mem://", f)
		w.snap.Policy = saying(t, agent.DecisionAsk)
		in := granted(w.asked("pay", `{}`), "open")
		var p Progress
		for n := 1; ; n++ {
			res, next, err := w.attempt(t.Context(), n, p, in)
			if err == nil {
				wantState(t, res, agent.StateVoid)
				if res.Terms.Observed.Trouble == "" || strings.Contains(res.Terms.Observed.Trouble, hush) {
					t.Errorf("observed %+v", res.Terms.Observed)
				}
				break
			}
			wantApp(t, err, agent.ErrTool, false)
			p = next
		}
		if looks < lookTries || f.count() != 0 {
			t.Errorf("looked %d times, sent %d times", looks, f.count())
		}
	})
}

func TestACompensationHasThePlansAuthorityButNotAgainstPolicy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for decision, want := range map[agent.Decision]agent.State{
			agent.DecisionAllow: agent.StateCommitted, agent.DecisionAsk: agent.StateCommitted, agent.DecisionDeny: agent.StateDenied,
		} {
			f := newFake(t, spec(agent.ClassOnce), nil)
			w := newWorld(t, "mem://", f)
			w.snap.Policy = saying(t, decision)
			in := w.asked("pay", `{}`)
			in.Undoes, in.Undo = in.Key(), 1
			res := w.mustAttempt(1, in)
			if res.State != want {
				t.Errorf("%s: %s (%s)", decision, res.State, res.Note)
			}
			if d, ok := w.dispatched(in.Key()); ok && want == agent.StateCommitted && d.Undoes != in.Undoes {
				t.Errorf("%s: dispatch record %+v", decision, d)
			}
			if want == agent.StateCommitted && f.calls[0].Key != agent.UndoKey(in.Undoes, 1) {
				t.Errorf("sent with key %s", f.calls[0].Key)
			}
		}
	})
}

func TestADispatchRecordStandsAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, "mem://", f)
		w.snap.Policy = saying(t, agent.DecisionAsk)
		in := granted(w.asked("pay", `{"to":"acme"}`), "")
		w.mustAttempt(1, in)
		d, _ := w.dispatched(in.Key())
		if d.Args != in.Args || d.Grant == nil || len(d.Grant.Decisions) != 1 || d.Tool != "pay" || d.Intent == "" || d.Verdict.Rule != "one" {
			t.Errorf("dispatch record %+v", d)
		}
	})
}

func TestAnAllowedEffectCostsThreeWritesAndNoReadAndAReadNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for class, writes := range map[agent.Class]int64{agent.ClassOnce: 3, agent.ClassIdempotent: 3, agent.ClassReconcilable: 3, agent.ClassRead: 0} {
			w := newWorld(t, "mem://", newFake(t, spec(class), nil))
			in := w.asked("pay", `{}`)
			before := w.Store.Stats()
			w.mustAttempt(1, in)
			after := w.Store.Stats()
			if after.Writes-before.Writes != writes || after.Reads != before.Reads || after.Lists != before.Lists {
				t.Errorf("%s: %d writes, %d reads", class, after.Writes-before.Writes, after.Reads-before.Reads)
			}
		}
	})
}

func TestTheTurnLearnsTheSerialOfANewerConfiguration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
		in := w.asked("pay", `{}`)
		if res := w.mustAttempt(1, in); res.Serial != 0 {
			t.Errorf("serial %d, which the turn knows", res.Serial)
		}
		w.snap.Serial = 7
		if res := w.mustAttempt(2, in); res.Serial != 7 {
			t.Errorf("serial %d, want 7", res.Serial)
		}
	})
}

func TestUncertaintyIsHeldAsPolicySays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for doubt, hold := range map[policy.Doubt]bool{policy.DoubtWait: true, policy.DoubtTell: false} {
			w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), func(context.Context, tool.Call) (tool.Result, error) {
				return tool.Result{}, fmt.Errorf("status 502")
			}))
			w.snap.Policy = newPolicy(t, policy.Config{Uncertain: doubt, Rules: []policy.Rule{{Name: "one", Then: agent.DecisionAllow}}})
			if res := w.mustAttempt(1, w.asked("pay", `{}`)); res.State != agent.StateUncertain || res.Hold != hold {
				t.Errorf("%s: %s, hold %v", doubt, res.State, res.Hold)
			}
		}
	})
}

func TestAnAttemptThatWasHeldUpAfterItsAdmissionIsAdmittedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		r := &toolRun{
			Activities: w.Activities, pulse: &pulse{ctx: t.Context(), attempt: 1, beat: func(Progress) {}}, snap: w.snap, in: in,
			space: w.space(), key: in.Key(), tool: f, spec: f.spec, admitted: time.Now(),
		}
		time.Sleep(maxSendBy + time.Second)
		_, err := r.effect()
		wantApp(t, err, agent.ErrTool, false)
		if _, ok := w.dispatched(in.Key()); ok || f.count() != 0 {
			t.Errorf("dispatched %v, sent %d times", ok, f.count())
		}
	})
}
