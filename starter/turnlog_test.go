package starter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/holdfast-run/holdfast/agent"
)

// A story builds the history of a turn, event by event.
type story struct {
	t      testing.TB
	events []*historypb.HistoryEvent
}

func (s *story) add(kind enumspb.EventType, fill func(*historypb.HistoryEvent)) int64 {
	id := int64(len(s.events) + 1)
	ev := &historypb.HistoryEvent{EventId: id, EventType: kind, EventTime: timestamppb.New(time.Unix(1_800_000_000+id, 0))}
	fill(ev)
	s.events = append(s.events, ev)
	return id
}

func (s *story) started(in agent.TurnInput) {
	s.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED, func(ev *historypb.HistoryEvent) {
		ev.Attributes = &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
			WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: payloads(s.t, in)},
		}
	})
}

// activity schedules one and completes it, unless there is no result yet.
func (s *story) activity(kind string, in, result any) {
	id := s.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED, func(ev *historypb.HistoryEvent) {
		ev.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityType: &commonpb.ActivityType{Name: kind}, Input: payloads(s.t, in),
			},
		}
	})
	if result == nil {
		return
	}
	s.add(enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, func(ev *historypb.HistoryEvent) {
		ev.Attributes = &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
			ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: id, Result: payloads(s.t, result)},
		}
	})
}

func (s *story) local(kind string, result any) {
	s.add(enumspb.EVENT_TYPE_MARKER_RECORDED, func(ev *historypb.HistoryEvent) {
		ev.Attributes = &historypb.HistoryEvent_MarkerRecordedEventAttributes{
			MarkerRecordedEventAttributes: &historypb.MarkerRecordedEventAttributes{
				MarkerName: "LocalActivity",
				Details: map[string]*commonpb.Payloads{
					"data": payloads(s.t, map[string]string{"ActivityType": kind}), "result": payloads(s.t, result),
				},
			},
		}
	})
}

func (s *story) signal(name string, body any) {
	s.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED, func(ev *historypb.HistoryEvent) {
		ev.Attributes = &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{
			WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{SignalName: name, Input: payloads(s.t, body)},
		}
	})
}

// timer starts one and lets it fire.
func (s *story) timer(summary string) {
	id := s.add(enumspb.EVENT_TYPE_TIMER_STARTED, func(ev *historypb.HistoryEvent) {
		ev.UserMetadata = &sdkpb.UserMetadata{Summary: payloads(s.t, summary).GetPayloads()[0]}
	})
	s.add(enumspb.EVENT_TYPE_TIMER_FIRED, func(ev *historypb.HistoryEvent) {
		ev.Attributes = &historypb.HistoryEvent_TimerFiredEventAttributes{
			TimerFiredEventAttributes: &historypb.TimerFiredEventAttributes{StartedEventId: id},
		}
	})
}

func (s *story) terminated() {
	s.add(enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_TERMINATED, func(ev *historypb.HistoryEvent) {
		ev.Attributes = &historypb.HistoryEvent_WorkflowExecutionTerminatedEventAttributes{
			WorkflowExecutionTerminatedEventAttributes: &historypb.WorkflowExecutionTerminatedEventAttributes{Reason: "test"},
		}
	})
}

// read gives the history to a log and returns it with what it said, one event a line.
func (s *story) read() (*turnLog, string) {
	log := newTurnLog(decoder{converter.GetDefaultDataConverter()}, 1)
	var out strings.Builder
	for _, ev := range s.events {
		for _, e := range log.add(ev) {
			checkText(s.t, e.Text)
			fmt.Fprintf(&out, "%s %s\n", e.Type, e.Text)
		}
	}
	return log, out.String()
}

// beginning begins a turn in which the calls were asked for, and returns the key of each.
func beginning(t testing.TB, calls ...agent.Call) (*story, []string) {
	s := &story{t: t}
	scope := agent.NewScope("s", "run")
	s.started(agent.TurnInput{Scope: scope, Turn: 1, Agent: "helper"})
	var keys []string
	for i := range calls {
		if calls[i].Verdict.Decision == agent.DecisionAsk && calls[i].Terms == nil {
			calls[i].Terms = &agent.Terms{Quorum: 1, Expires: agent.Duration(time.Hour)}
		}
		calls[i].Action = agent.DigestOf([]byte(calls[i].Tool + calls[i].Args))
		keys = append(keys, agent.ActionKey(scope, agent.Place{Turn: 1, Step: 1, Call: i + 1}, calls[i].Action))
	}
	s.activity(agent.ActivityModel, agent.ModelInput{Scope: scope, Place: agent.Place{Turn: 1, Step: 1}}, agent.ModelResult{Calls: calls})
	return s, keys
}

func ask(tool string) agent.Call {
	return agent.Call{Tool: tool, Args: "{}", Class: agent.ClassOnce, Verdict: agent.Verdict{Decision: agent.DecisionAsk, Rule: "r"}}
}

func allow(tool string) agent.Call {
	c := ask(tool)
	c.Verdict.Decision = agent.DecisionAllow
	return c
}

func decided(key string, choice agent.Choice, who string) agent.JudgeResult {
	return agent.JudgeResult{Decided: agent.Decided{
		ApprovalDecision: agent.ApprovalDecision{ID: agent.ApprovalID(key, 1), Choice: choice, Approver: who, Reason: "because"},
		At:               time.Unix(1_800_000_100, 0), Claimed: true,
	}}
}

func toolInput(c agent.Call, call int) agent.ToolInput {
	return agent.ToolInput{
		Scope: agent.NewScope("s", "run"), Place: agent.Place{Turn: 1, Step: 1, Call: call}, Tool: c.Tool, Args: c.Args, Class: c.Class,
		Action: agent.DigestOf([]byte(c.Tool + c.Args)),
	}
}

func wantText(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("%q is not in:\n%s", w, got)
		}
	}
}

func states(e *agent.Effect) string {
	var out []string
	for _, s := range e.Trail {
		out = append(out, string(s.State))
	}
	return strings.Join(out, " ")
}

func TestAHistoryTellsEachEndOfARequestApart(t *testing.T) {
	t.Parallel()
	s, keys := beginning(t, ask("a"), ask("b"), ask("c"), ask("d"), ask("e"))
	s.signal(agent.SignalApproval, agent.ApprovalDecision{ID: agent.ApprovalID(keys[0], 1), Choice: agent.ChoiceApprove, Approver: "alice"})
	s.local(agent.ActivityJudge, decided(keys[0], agent.ChoiceApprove, "alice"))
	s.local(agent.ActivityJudge, decided(keys[1], agent.ChoiceDecline, "bob"))
	s.local(agent.ActivityJudge, decided(keys[2], agent.ChoiceCancel, "carol"))
	s.local(agent.ActivityJudge, agent.JudgeResult{Why: "it is late"})
	s.timer(agent.ExpirySummary + "d")
	log, text := s.read()
	wantText(t, text,
		"approval.requested tool a {} waits for approval, rule r\n",
		"approval.arrived a decision arrived by alice: approve: "+keys[0]+"#1",
		"approval.decided approved by alice (claimed): because: tool a ("+keys[0]+"#1)",
		"approval.decided declined by bob (claimed): because", "approval.decided withdrawn by carol (claimed)",
		"approval.refused a decision does not count: it is late", "approval.expired the time to decide is over: tool d")
	want := map[string]string{
		keys[0]: "requested awaiting_approval authorized", keys[1]: "requested awaiting_approval declined",
		keys[2]: "requested awaiting_approval cancelled", keys[3]: "requested awaiting_approval expired", keys[4]: "requested awaiting_approval",
	}
	for key, trail := range want {
		if got := states(log.effect(key)); got != trail {
			t.Errorf("%s went through %q, want %q", key, got, trail)
		}
	}
	if waiting := log.waitingFor(); len(waiting) != 1 || waiting[0].Key != keys[4] {
		t.Errorf("%d requests wait, want that of e: %+v", len(waiting), waiting)
	}
	s.terminated()
	if log, _ = s.read(); len(log.waitingFor()) != 0 || log.effect(keys[4]).State != agent.StateCancelled {
		t.Errorf("after the turn's end %d requests wait", len(log.waitingFor()))
	}
}

func TestAQuorumIsCompleteOnlyWithItsLastApproval(t *testing.T) {
	t.Parallel()
	s, keys := beginning(t, ask("a"))
	first := decided(keys[0], agent.ChoiceApprove, "alice")
	first.Quorum = 2
	s.local(agent.ActivityJudge, first)
	log, text := s.read()
	wantText(t, text, "(claimed): because: tool a ("+keys[0]+"#1); 1 of 2")
	if got := log.approval(keys[0] + "#1").Outcome; got != agent.OutcomePending {
		t.Errorf("after one of two it is %s", got)
	}
	second := decided(keys[0], agent.ChoiceApprove, "bob")
	second.Quorum = 2
	s.local(agent.ActivityJudge, second)
	if log, _ = s.read(); log.approval(keys[0]+"#1").Outcome != agent.OutcomeApproved {
		t.Errorf("after two of two it is %s", log.approval(keys[0]+"#1").Outcome)
	}
}

func TestAVoidApprovalIsAskedForAgainUntilTheThirdVoid(t *testing.T) {
	t.Parallel()
	c := ask("a")
	s, keys := beginning(t, c)
	for n := 1; n <= agent.MaxVoids; n++ {
		in := toolInput(c, 1)
		in.Grant = &agent.Grant{ID: agent.ApprovalID(keys[0], n)}
		s.activity(agent.ActivityTool, in, agent.ToolResult{
			State: agent.StateVoid, Note: "the target has changed",
			Verdict: &agent.Verdict{Decision: agent.DecisionAsk, Rule: "r2"}, Terms: &agent.Terms{Quorum: 1},
		})
	}
	log, text := s.read()
	wantText(t, text, "approval.void tool a was not sent, its approval is void: the target has changed",
		"rule r2: the target has changed\n")
	if len(log.approvals) != agent.MaxVoids || log.approvals[0].Outcome != agent.OutcomeVoid {
		t.Errorf("%d requests, the first %s", len(log.approvals), log.approvals[0].Outcome)
	}
}

func TestOnlyTheSettlementThatCountsIsNamed(t *testing.T) {
	t.Parallel()
	c := allow("pay")
	s, keys := beginning(t, c, allow("other"))
	s.activity(agent.ActivityTool, toolInput(c, 1), agent.ToolResult{State: agent.StateUncertain, Attempt: 1, Note: "no answer", Hold: true})
	s.signal(agent.SignalSettle, agent.Settlement{Key: keys[1], Outcome: agent.StateFailed, Evidence: "x", Approver: "early"})
	s.signal(agent.SignalSettle, agent.Settlement{Key: keys[0], Outcome: agent.StateFailed, Evidence: "wrong", Approver: "mallory"})
	s.signal(agent.SignalSettle, agent.Settlement{Key: keys[0], Outcome: agent.StateCommitted, Evidence: "line 7", Approver: "alice"})
	s.local(agent.ActivitySettle, agent.SettleResult{Key: keys[0], Why: "no right"})
	s.local(agent.ActivitySettle, agent.SettleResult{Key: keys[0], By: "alice", Result: agent.ToolResult{
		State: agent.StateCommitted, Attempt: 1, Evidence: "settled by alice: line 7", Conflict: "another word",
	}})
	log, text := s.read()
	wantText(t, text, "effect.uncertain it is not known whether tool pay happened; the turn waits until somebody has found out: holdfast effects settle '"+keys[0],
		"effect.refused a settlement by mallory does not count: no right",
		"effect.settled tool pay: settled as committed by alice (line 7)", "effect.conflict tool pay: two outcomes contradict")
	if e := log.effect(keys[0]); states(e) != "requested authorized dispatched uncertain committed" || e.Conflict == "" {
		t.Errorf("it went through %q, conflict %q", states(e), e.Conflict)
	}
}

func TestCompensationsAreToldOneAfterTheOther(t *testing.T) {
	t.Parallel()
	c := allow("order")
	s, keys := beginning(t, c, allow("seal"), allow("post"))
	s.activity(agent.ActivityTool, toolInput(c, 1), agent.ToolResult{State: agent.StateCommitted, Attempt: 1})
	undo := func(key string, call agent.Call) agent.Undo {
		return agent.Undo{Effect: agent.Effect{Key: key, Tool: "t", Place: agent.Place{Turn: 1, Step: 1, Call: 1}}, Call: call}
	}
	stands, denied := undo(keys[1], agent.Call{}), undo(keys[2], allow("unpost"))
	stands.Irreversible, denied.Call.Verdict.Decision = true, agent.DecisionDeny
	s.local(agent.ActivityPlan, agent.PlanResult{Then: agent.UnwindAsk, Undos: []agent.Undo{denied, stands, undo(keys[0], ask("unorder"))}})
	in := toolInput(ask("unorder"), 1)
	in.Undoes, in.Undo = keys[0], 1
	s.activity(agent.ActivityTool, in, agent.ToolResult{State: agent.StateFailed, Attempt: 1, Note: "closed"})
	log, text := s.read()
	wantText(t, text, "compensation.planned 3 compensations, each to be approved", "compensation.failed tool t cannot be undone: policy denies it by rule r",
		"compensation.failed tool t cannot be undone: it is declared irreversible",
		"approval.requested tool unorder {} waits for approval, rule r: undoes "+keys[0],
		"compensation.started compensation: tool unorder", "compensation.ended compensation: tool unorder {}: failed (closed)")
	for key, want := range map[string]agent.State{
		keys[0]: agent.StateCompensationFailed, keys[1]: agent.StateIrreversible, keys[2]: agent.StateCompensationFailed,
		agent.UndoKey(keys[0], 1): agent.StateFailed,
	} {
		if e := log.effect(key); e == nil || e.State != want {
			t.Errorf("%s is %+v, want %s", key, e, want)
		}
	}
	shown := log.shown("s")
	if len(shown.Undos) != 1 || len(shown.Steps) != 1 || len(shown.Steps[0].Actions) != 3 || shown.Steps[0].Actions[0].Tool != "order" {
		t.Errorf("a compensation took the place of the call that it undoes: %+v", shown)
	}
}

func TestAttentionListsWhatExpiresFirstAndEachEffectOnce(t *testing.T) {
	t.Parallel()
	at := time.Unix(1_800_000_000, 0)
	found := []matter{
		{Kind: matterStuck, Workflow: "w"},
		{Kind: matterUncertain, Key: "k", Since: at.Add(time.Hour)},
		{Kind: matterUncertain, Key: "k2", Since: at},
		{Kind: matterApproval, Approval: "never"},
		{Kind: matterApproval, Approval: "late", Expires: at.Add(time.Hour)},
		{Kind: matterApproval, Approval: "soon", Expires: at},
		{Kind: matterUncertain, Key: "k"},
	}
	sortMatters(found)
	got := ""
	for _, m := range distinct(found) {
		got += m.Kind + " " + m.Approval + m.Key + "; "
	}
	if want := "approval soon; approval late; approval never; uncertain k; uncertain k2; stuck ; "; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
