package starter

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
)

// A lateWord is what settled an effect after its turn had ended. The session lists such an effect no more, so
// that only its history says what became of it.
type lateWord struct {
	key    string
	at     time.Time
	result agent.SettleResult
}

// settling reads the settlements in a session's history.
func (s *sessionLog) settling(ev *historypb.HistoryEvent) {
	switch ev.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
		a := ev.GetWorkflowExecutionSignaledEventAttributes()
		var x agent.Settlement
		if a.GetSignalName() == agent.SignalSettle && s.first(a.GetInput(), &x) == nil && x.Outcome != "" && len(s.letters) < maxLetters {
			s.letters = append(s.letters, x)
		}
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		a := ev.GetMarkerRecordedEventAttributes()
		var r agent.SettleResult
		if s.localActivity(a) == agent.ActivitySettle && s.first(a.GetDetails()["result"], &r) == nil {
			s.word(takeLetter(&s.letters, &r).Key, ev, r)
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
		a := ev.GetActivityTaskScheduledEventAttributes()
		var in agent.SettleInput
		if a.GetActivityType().GetName() == agent.ActivitySettle && s.first(a.GetInput(), &in) == nil {
			if s.asked == nil {
				s.asked = map[int64]string{}
			}
			s.asked[ev.GetEventId()] = in.Settlement.Key
		}
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := ev.GetActivityTaskCompletedEventAttributes()
		var r agent.SettleResult
		if key := s.asked[a.GetScheduledEventId()]; key != "" && s.first(a.GetResult(), &r) == nil {
			s.word(key, ev, r)
		}
	}
}

// maxLetters bounds the settlements whose answer has not been read.
const maxLetters = 1000

func (s *sessionLog) word(key string, ev *historypb.HistoryEvent, r agent.SettleResult) {
	if key == "" || r.Why != "" {
		return
	}
	w := lateWord{key: key, result: r}
	if ts := ev.GetEventTime(); ts != nil && ts.IsValid() {
		w.at = ts.AsTime()
	}
	s.words = append(s.words, w)
}

// localActivity returns the type of the local activity that a marker is of, "" when it is none's.
func (d decoder) localActivity(a *historypb.MarkerRecordedEventAttributes) string {
	var data struct{ ActivityType string }
	if a.GetMarkerName() != "LocalActivity" || a.GetFailure() != nil || d.first(a.GetDetails()["data"], &data) != nil {
		return ""
	}
	return data.ActivityType
}

// takeLetter takes out the settlement that a result is the answer to, the first of its effect. They are answered in the
// order in which they came; those that are refused at once have no marker.
func takeLetter(letters *[]agent.Settlement, r *agent.SettleResult) agent.Settlement {
	for i, l := range *letters {
		if l.Key == r.Key {
			*letters = append((*letters)[:i:i], (*letters)[i+1:]...)
			return l
		}
	}
	return agent.Settlement{}
}

// settle enters what became of effects after their turns had ended.
func (out *foundEffects) settle(words []lateWord) {
	for _, w := range words {
		i := out.index(w.key)
		if i < 0 || !effect.Unresolved(out.Effects[i].Effect) {
			continue
		}
		if w.result.Looked {
			out.Effects[i].Effect.Looked = w.result.Result.Evidence
			continue
		}
		var l effect.Ledger
		if l.Add(out.Effects[i].Effect) != nil || l.SettleLate(w.key, w.result.Result, w.at, w.result.By) != nil {
			continue // of another version: what is known stays
		}
		e, _ := l.Get(w.key)
		out.Effects[i].Effect, out.Effects[i].Source = e, sourceSession
		if of := out.index(e.Undoes); of >= 0 && e.State == agent.StateCommitted {
			undone := &out.Effects[of].Effect
			undone.State, undone.At = agent.StateCompensated, w.at
			undone.Trail = append(undone.Trail, agent.Stamp{State: undone.State, At: w.at, By: w.result.By})
		}
	}
}
