package starter

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-run/holdfast/agent"
)

// FuzzHistory feeds any history to everything that reads one: it must come out as lines of bounded length
// that a terminal does not obey, and never as a crash.
func FuzzHistory(f *testing.F) {
	for _, h := range recordings(f) {
		b, err := proto.Marshal(h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	if b, err := proto.Marshal(&historypb.History{Events: hostile(f).events}); err == nil {
		f.Add(b)
	}
	f.Add([]byte("not a history"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h historypb.History
		if proto.Unmarshal(b, &h) != nil {
			return
		}
		d := decoder{converter.GetDefaultDataConverter()}
		turn, session := newTurnLog(d, 1), &sessionLog{decoder: d, session: "s"}
		var out []event
		for _, ev := range h.GetEvents() {
			out = append(out, turn.add(ev)...)
			out = append(out, session.add(ev)...)
		}
		for _, e := range out {
			checkText(t, e.Text)
		}
		a := &App{Out: io.Discard, Err: io.Discard}
		s := turn.shown("s")
		s.attach()
		a.printTurn(&s)
		l := &ledger{effects: turn.ledger(), approvals: turn.waitingFor()}
		a.printMatters(l.matters(), time.Now())
		all := foundEffects{}
		for _, e := range l.effects {
			all.Effects = append(all.Effects, foundEffect{Effect: e})
			a.printEffect(&shownEffect{foundEffect: foundEffect{Effect: e}, Approvals: l.approvals})
		}
		all.settle(session.words)
		if r := turn.summary("s", nil); r.Status != agent.StatusWaiting {
			p := &printer{app: a, session: "s"}
			_ = p.finish(t.Context(), &follower{session: "s"}, turn)
		}
		a.output = "json"
		if err := a.printJSON(s); err != nil && !strings.Contains(err.Error(), "Time.MarshalJSON") {
			t.Errorf("show -o json: %v", err)
		}
	})
}

// hostile is a history that says of authority whatever it likes.
func hostile(t testing.TB) *story {
	evil := ask("\x1b[2J\u202e")
	evil.Args, evil.Terms = strings.Repeat("\u200b", 3000), &agent.Terms{Expires: -1, EscalateAfter: 1, Quorum: -5, First: "\x00"}
	s, keys := beginning(t, evil, ask("b"))
	s.task("\x1b[31m")
	s.task("\u202e")
	s.local(agent.ActivityOpen, agent.OpenResult{Definition: "\x1b", Model: "m", Build: "\n", Offer: &agent.Offer{Call: evil}})
	s.activity(agent.ActivityModel, agent.ModelInput{}, agent.ModelResult{Calls: policies(999)})
	s.activity(agent.ActivityFork, agent.ForkInput{}, agent.ForkResult{Origin: agent.Origin{By: strings.Repeat("\x1b", 9999)}})
	s.signal(agent.SignalApproval, []int{1})
	s.signal(agent.SignalSettle, agent.Settlement{Key: "\n", Outcome: "\x1b", Approver: strings.Repeat("a", 9999)})
	s.signal(agent.SignalCompensate, "no")
	s.local(agent.ActivityJudge, decided(keys[0], "\x1b]0;", "\u202eecila"))
	s.local(agent.ActivityJudge, []string{"x"})
	edited := decided(keys[1], agent.ChoiceApprove, "x")
	edited.Edited = &evil
	s.local(agent.ActivityJudge, edited)
	s.local(agent.ActivitySettle, agent.SettleResult{Result: agent.ToolResult{State: "?\n", Evidence: "\x7f"}})
	s.local(agent.ActivityPlan, agent.PlanResult{Then: "\r", Undos: []agent.Undo{{Call: evil}, {Irreversible: true}}})
	s.timer(agent.ExpirySummary + "b")
	s.activity(agent.ActivityTool, agent.ToolInput{Undoes: "\x1b", Grant: &agent.Grant{ID: "#"}}, agent.ToolResult{State: agent.StateVoid, Verdict: &evil.Verdict, Terms: evil.Terms})
	s.activity(agent.ActivityReconcile, agent.ReconcileInput{Effects: []agent.Effect{{Key: keys[0]}}}, agent.ReconcileResult{Results: make([]agent.ToolResult, 3)})
	s.activity(agent.ActivitySettle, agent.SettleInput{}, agent.SettleResult{Why: "\x1b"})
	return s
}

// policies are calls of which each was decided on by another policy.
func policies(n int) []agent.Call {
	out := make([]agent.Call, n)
	for i := range out {
		out[i].Verdict.Policy = strings.Repeat("\x1b", i)
	}
	return out
}

func checkText(t testing.TB, s string) {
	t.Helper()
	if s == "" || len(s) > 16<<10 || !utf8.ValidString(s) {
		t.Errorf("line of %d bytes: %.100q", len(s), s)
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f || r == '\u202e' {
			t.Errorf("line holds %q: %.200q", r, s)
		}
	}
}

func payloads(t testing.TB, v any) *commonpb.Payloads {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayloads(v)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func recordings(t testing.TB) []*historypb.History {
	stored := &commonpb.Payloads{Payloads: []*commonpb.Payload{{Metadata: map[string][]byte{
		"encoding": []byte("json/protobuf"), "messageType": []byte("temporal.api.sdk.v1.ExternalStorageReference"),
	}, Data: []byte(`{"driverName":"x"}`)}}}
	hostile := agent.TurnInput{Agent: "\x1b]0;x\x07\u202e\nnext", Message: agent.Message{ID: "m", Text: "hi"}}
	call := agent.Call{ID: "1", Tool: "t\x1b[2J", Args: `{"a":12345678901234567890}`, Trouble: strings.Repeat("no\n", 5000)}
	started := func(p *commonpb.Payloads) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{
			EventId: 1, EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
				WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: p},
			},
		}
	}
	scheduled := func(kind string, in, summary *commonpb.Payloads) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{
			EventId: 5, EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
			UserMetadata: &sdkpb.UserMetadata{Summary: summary.GetPayloads()[0]},
			Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
				ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
					ActivityType: &commonpb.ActivityType{Name: kind}, Input: in,
				},
			},
		}
	}
	completed := func(p *commonpb.Payloads) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{
			EventId: 6, EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
			Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
				ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{ScheduledEventId: 5, Result: p},
			},
		}
	}
	failed := &historypb.HistoryEvent{
		EventId: 9, EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED,
		Attributes: &historypb.HistoryEvent_WorkflowExecutionFailedEventAttributes{
			WorkflowExecutionFailedEventAttributes: &historypb.WorkflowExecutionFailedEventAttributes{Failure: &failurepb.Failure{
				Message: "outer\x1b[31m", Cause: &failurepb.Failure{Message: "inner", FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
					ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{
						Type:    agent.ErrLimit,
						Details: payloads(t, agent.TurnResult{Status: agent.StatusFailed, Reason: &agent.Reason{Type: "x", Message: "y\x00"}}),
					},
				}},
			}},
		},
	}
	summary := payloads(t, "tool: \x1b[1m\u200bsecret")
	return []*historypb.History{
		{Events: []*historypb.HistoryEvent{
			started(payloads(t, hostile)),
			scheduled(agent.ActivityModel, payloads(t, agent.ModelInput{Place: agent.Place{Turn: 1, Step: 1}}), summary),
			completed(payloads(t, agent.ModelResult{Text: "\x1b[31m", Calls: []agent.Call{call}})), failed,
		}},
		{Events: []*historypb.HistoryEvent{started(stored), scheduled(agent.ActivityTool, stored, stored), completed(stored)}},
		{Events: []*historypb.HistoryEvent{
			started(payloads(t, []int{1})),
			scheduled(agent.ActivityTool, payloads(t, agent.ToolInput{Tool: "pay", Args: "{}"}), summary),
			completed(payloads(t, agent.ToolResult{State: "\x1b", Note: "\r\n", Conflict: "?"})),
		}},
		{Events: []*historypb.HistoryEvent{{EventId: 1, EventType: 9999}, {EventId: 2}, {EventId: -1, EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED}}},
	}
}

func TestStoredAndForeignPayloadsAreShownAsSuch(t *testing.T) {
	t.Parallel()
	h := recordings(t)
	for i, want := range map[int]string{1: "(stored)", 2: "(cannot be read", 3: "event 1: "} {
		log := newTurnLog(decoder{converter.GetDefaultDataConverter()}, 1)
		text := ""
		for _, ev := range h[i].GetEvents() {
			for _, e := range log.add(ev) {
				text += e.Text + "\n"
			}
		}
		if !strings.Contains(text, want) {
			t.Errorf("history %d: %q is not in %q", i, want, text)
		}
	}
}

func FuzzCursor(f *testing.F) {
	f.Add(cursor{{"s", "run", 7}}.String())
	f.Add(cursor{{"s:turn-3", "run", 7}, {"s", "other", 1}}.String())
	f.Add("W10")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		c, err := parseCursor(s, "s")
		if err != nil {
			return
		}
		again, err := parseCursor(c.String(), "s")
		if err != nil || again.String() != c.String() {
			t.Errorf("%q came back as %v, %v", s, again, err)
		}
	})
}

func FuzzMoney(f *testing.F) {
	for _, s := range []string{"0.25", "1", "0.000001", "", ".", "1.", "-1", "1e3", "9223372036854.775807", "0.0000001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseMoney(s)
		if err != nil {
			return
		}
		again, err := parseMoney(money(n))
		if n < 0 || err != nil || again != n {
			t.Errorf("%q = %d, prints as %q = %d, %v", s, n, money(n), again, err)
		}
	})
}

func TestSessionIDsAreValidWhateverTheAgentIsCalled(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "a", "--", "Ärger im Büro", strings.Repeat("x", 500), "a/b:c", "\x00"} {
		for _, id := range []string{newSessionID(name), sessionFor(name, "m1")} {
			if !agent.ValidSessionID(id) {
				t.Errorf("agent %.20q: session id %q", name, id)
			}
		}
		if first, again, other := sessionFor(name, "m1"), sessionFor(name, "m1"), sessionFor(name, "m2"); first != again || first == other {
			t.Errorf("agent %.20q: the session's id does not follow from the message's", name)
		}
	}
}

func TestTextFromOutsideIsVisibleOnATerminalAndUntouchedInAPipe(t *testing.T) {
	t.Parallel()
	if got, want := visibleLines("a\x1b[31m\tb\nc\u202e"), "a⟨U+001B⟩[31m\tb\nc⟨U+202E⟩"; got != want {
		t.Errorf("visibleLines = %q, want %q", got, want)
	}
	var out strings.Builder
	a := &App{Out: &out}
	if err := a.answer("a\x1b[31m"); err != nil || out.String() != "a\x1b[31m\n" {
		t.Errorf("a pipe got %q, %v", out.String(), err)
	}
	if isTerminal(os.Stdin) && isTerminal(&out) {
		t.Error("a string is no terminal")
	}
}
