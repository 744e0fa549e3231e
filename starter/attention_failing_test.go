package starter

import (
	"fmt"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	failurepb "go.temporal.io/api/failure/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/agent"
)

// pending is a run with an activity for each error type, at an attempt.
func pending(attempt int32, kinds ...string) *workflowservice.DescribeWorkflowExecutionResponse {
	d := &workflowservice.DescribeWorkflowExecutionResponse{ExecutionConfig: &workflowpb.WorkflowExecutionConfig{
		TaskQueue: &taskqueuepb.TaskQueue{Name: "desk"},
	}}
	for i, kind := range kinds {
		d.PendingActivities = append(d.PendingActivities, &workflowpb.PendingActivityInfo{
			ActivityId: fmt.Sprint(i), ActivityType: &commonpb.ActivityType{Name: agent.ActivityOpen}, Attempt: attempt,
			LastFailure: &failurepb.Failure{Message: "it\x1b[2J broke", FailureInfo: &failurepb.Failure_ApplicationFailureInfo{
				ApplicationFailureInfo: &failurepb.ApplicationFailureInfo{Type: kind},
			}},
		})
	}
	return d
}

func TestAnActivityNeedsAPersonSoonerIfNobodyElseMendsIt(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, c := range map[string]struct {
		kind    string
		attempt int32
		since   time.Duration // 0: not known
		want    bool
	}{
		"a first trouble":                      {agent.ErrStaleConfig, 2, time.Hour, false},
		"a model is missing":                   {agent.ErrStaleConfig, 5, 0, true},
		"another store":                        {agent.ErrWrongStore, 5, time.Second, true},
		"the store is gone":                    {agent.ErrStore, 6, time.Second, true},
		"the key is refused":                   {agent.ErrAuthentication, 5, time.Second, true},
		"the build does not know it":           {notRegistered, 5, time.Second, true},
		"a busy model":                         {agent.ErrOverloaded, 10, time.Minute, false},
		"a busy model, and nobody knows since": {agent.ErrRateLimit, 10, 0, false},
		"a model that stays busy":              {agent.ErrRateLimit, 10, 6 * time.Minute, true},
		"a model that never answers":           {agent.ErrModelTimeout, 30, 0, true},
		"a tool in trouble":                    {agent.ErrTool, 5, time.Minute, false},
		"something that we do not know":        {"", 5, time.Hour, true},
	} {
		since := time.Time{}
		if c.since > 0 {
			since = now.Add(-c.since)
		}
		found := ailingOf(pending(c.attempt, c.kind), decoder{converter.GetDefaultDataConverter()})
		if got := len(found) == 1 && found[0].due(since, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWhatEndsByItselfOrByAPersonIsNotFailing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*workflowpb.PendingActivityInfo){
		"given up soon":   func(p *workflowpb.PendingActivityInfo) { p.MaximumAttempts = 5 },
		"paused":          func(p *workflowpb.PendingActivityInfo) { p.Paused = true },
		"being cancelled": func(p *workflowpb.PendingActivityInfo) { p.State = enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED },
		"no word of it":   func(p *workflowpb.PendingActivityInfo) { p.LastFailure = nil },
	} {
		d := pending(40, agent.ErrStore)
		change(d.PendingActivities[0])
		if found := ailingOf(d, decoder{converter.GetDefaultDataConverter()}); len(found) != 0 {
			t.Errorf("%s: %+v", name, found[0])
		}
	}
}

func TestAFailingActivitySaysWhatToDo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		at, kind        string
		command, advice string
	}{
		"a model":       {"s:turn-2", agent.ErrStaleConfig, "holdfast deploy check", "a holdfast.yaml that has it"},
		"a store":       {"s:turn-2", agent.ErrWrongStore, "holdfast show s/turn-2", "store.url"},
		"a key":         {"s:turn-2", agent.ErrAuthentication, "holdfast show s/turn-2", "models.NAME.key"},
		"a build":       {"s:turn-2", notRegistered, "holdfast deploy status", "a newer build"},
		"a session's":   {"s", agent.ErrStore, "temporal workflow show -w 's'", "holdfast close s"},
		"by itself":     {"s:turn-2", agent.ErrOverloaded, "holdfast show s/turn-2", "goes on by itself"},
		"how to end it": {"s:turn-2", agent.ErrStaleConfig, "holdfast deploy check", "holdfast cancel s --turn 2"},
	} {
		at, err := parseAddress(c.at)
		if err != nil {
			t.Fatal(err)
		}
		found := ailingOf(pending(7, c.kind, c.kind), decoder{converter.GetDefaultDataConverter()})
		if len(found) != 1 {
			t.Fatalf("%s: %d matters of the same trouble", name, len(found))
		}
		m := found[0].matter(at, time.Time{})
		if m.Command != c.command || !strings.Contains(m.Advice, c.advice) || m.What != "open failed 6 times (and 1 more like it)" || m.Attempt != 7 {
			t.Errorf("%s: %+v", name, m)
		}
		var out strings.Builder
		(&App{Out: &out}).printMatters([]matter{m}, time.Now())
		if text := out.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, c.kind+": it⟨U+001B⟩[2J broke") {
			t.Errorf("%s: %q", name, text)
		}
	}
}

func TestALongErrorIsCut(t *testing.T) {
	t.Parallel()
	d := pending(7, agent.ErrStore)
	d.PendingActivities[0].LastFailure.Message = strings.Repeat("é", 5000) + "\xff"
	m := ailingOf(d, decoder{converter.GetDefaultDataConverter()})[0].matter(address{session: "s", turn: 1}, time.Time{})
	if n := len([]rune(m.Why)); n != maxWhy+1 {
		t.Errorf("%d characters", n)
	}
}
