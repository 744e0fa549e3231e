package starter

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/holdfast-run/holdfast/agent"
)

// From when on an activity that fails again and again needs a person. A worker's retries are about 10 s apart at most,
// so that unaided failures are about five minutes old either way; a destination may ask for longer pauses.
const (
	failingAttempt = 5 // of what only a person mends
	unaidedAttempt = 30
	unaidedTime    = 5 * time.Minute
)

// notRegistered is the SDK's error type of an activity that a worker's build does not have.
const notRegistered = "ActivityNotRegisteredError"

// A remedy is what a person does about a type of error.
type remedy struct{ advice, command string }

// remedyFor returns what to do about an error that does not go away by itself.
func remedyFor(kind, queue string) (remedy, bool) {
	workers := fmt.Sprintf("the workers of task queue %q", line(queue, 120))
	switch kind {
	case agent.ErrStaleConfig:
		return remedy{"give " + workers + " a holdfast.yaml that has it, with a serial no lower than before, and it goes on by itself; " +
			"what else lacks something: holdfast deploy check", "holdfast deploy check"}, true
	case agent.ErrWrongStore:
		return remedy{"give " + workers + " the session's store (store.url in holdfast.yaml), or start one that has it", ""}, true
	case agent.ErrStore:
		return remedy{"see that " + workers + " can read and write their store (store.url in holdfast.yaml)", ""}, true
	case agent.ErrAuthentication:
		return remedy{"give " + workers + " a key that the provider takes (models.NAME.key in holdfast.yaml)", ""}, true
	case agent.ErrQuota:
		return remedy{"see to the account at the provider, or name another one (models.NAME.key in holdfast.yaml)", ""}, true
	case agent.ErrUnknownAgent:
		return remedy{"give " + workers + " a holdfast.yaml that has the agent (agents.NAME)", ""}, true
	case notRegistered:
		return remedy{"start a worker of a newer build on task queue " + fmt.Sprintf("%q", line(queue, 120)) +
			", which knows this activity; who polls: holdfast deploy status", "holdfast deploy status"}, true
	}
	return remedy{}, false
}

// An ailing activity has failed several times and is tried again without end.
type ailing struct {
	info *workflowpb.PendingActivityInfo
	why  failure
	fix  remedy
	sure bool // only a person mends it
	more int  // further activities of the run with the same type of error
}

// ailingOf returns the activities of a run that fail again and again, one for each type of error. One that is given up
// after some attempts, or was paused by a person, is none.
func ailingOf(d *workflowservice.DescribeWorkflowExecutionResponse, payloads decoder) []*ailing {
	var out []*ailing
	seen := map[string]*ailing{}
	for _, p := range d.GetPendingActivities() {
		switch {
		case p.GetAttempt() < failingAttempt || p.GetLastFailure() == nil || p.GetMaximumAttempts() > 0 || p.GetPaused(),
			p.GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED:
			continue
		}
		x := &ailing{info: p, why: payloads.failure(p.GetLastFailure())}
		x.fix, x.sure = remedyFor(x.why.kind, d.GetExecutionConfig().GetTaskQueue().GetName())
		if first := seen[x.why.kind]; first != nil {
			first.more++
			if p.GetAttempt() > first.info.GetAttempt() {
				first.info, first.why = x.info, x.why
			}
			continue
		}
		seen[x.why.kind] = x
		out = append(out, x)
	}
	return out
}

// due says whether a person is needed now. What may go away by itself gets more time; a since of zero is not known.
func (x *ailing) due(since, now time.Time) bool {
	return x.sure || x.info.GetAttempt() >= unaidedAttempt || !since.IsZero() && now.Sub(since) >= unaidedTime
}

// failing tells of the activities of a run that fail again and again.
func (f *finder) failing(ctx context.Context, at address, d *workflowservice.DescribeWorkflowExecutionResponse) []matter {
	found := ailingOf(d, decoder{f.conn.payloads})
	if len(found) == 0 {
		return nil
	}
	since, now := f.conn.scheduled(ctx, d.GetWorkflowExecutionInfo()), time.Now()
	var out []matter
	for _, x := range found {
		if begun := since[x.info.GetActivityId()]; x.due(begun, now) {
			out = append(out, x.matter(at, begun))
		}
	}
	return out
}

// matter says it in words. The worker has masked the error's text; it may quote anything, and is made visible where it
// is printed.
func (x *ailing) matter(at address, since time.Time) matter {
	m := matter{
		Kind: matterFailing, Session: at.session, Turn: at.turn, Workflow: at.workflow(), Since: since,
		Activity: x.info.GetActivityType().GetName(), Attempt: int(x.info.GetAttempt()),
		Why: shortened(x.why.String(), maxWhy), Command: x.fix.command,
	}
	m.What = fmt.Sprintf("%s failed %s", m.Activity, count(m.Attempt-1, "time"))
	if x.more > 0 {
		m.What += fmt.Sprintf(" (and %d more like it)", x.more)
	}
	look, end := "temporal workflow show -w "+quoted(at.workflow()), "holdfast close "+at.session
	if at.turn != 0 {
		look = "holdfast show " + at.String()
		end = fmt.Sprintf("holdfast cancel %s --turn %d", at.session, at.turn)
	}
	if at.undo != 0 { // nobody cancels a compensation
		end = ""
	}
	if m.Command == "" {
		m.Command = look
	}
	m.Advice = x.fix.advice
	if !x.sure {
		m.Advice = "it goes on by itself once that is over"
	}
	m.Advice += "; see: " + look
	if end != "" {
		m.Advice += "; or give it up: " + end
	}
	return m
}

// maxWhy bounds why something needs a person, in characters: an error often says at its end what is to be done.
const maxWhy = 2 * lineLimit

// shortened bounds a text from outside that is not to be printed as it is.
func shortened(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit]) + "…"
}

// scheduled returns since when activities of a run are wanted, by their ids, as far as the run's latest events say so: what the
// server says of one itself is when its latest attempt was due.
func (c *conn) scheduled(ctx context.Context, info *workflowpb.WorkflowExecutionInfo) map[string]time.Time {
	ctx, cancel := context.WithTimeout(ctx, queryTimeout)
	defer cancel()
	h, err := c.WorkflowService().GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
		Namespace: c.namespace, Execution: info.GetExecution(), MaximumPageSize: taskEvents,
	})
	if err != nil {
		return nil
	}
	out := map[string]time.Time{}
	for _, ev := range h.GetHistory().GetEvents() {
		if a := ev.GetActivityTaskScheduledEventAttributes(); a != nil {
			out[a.GetActivityId()] = ev.GetEventTime().AsTime()
		}
	}
	return out
}
