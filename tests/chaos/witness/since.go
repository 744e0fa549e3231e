package witness

import (
	"cmp"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/effect"
)

// inOrder puts turns in the order of their numbers, and late compensations behind them.
func inOrder(turns []Turn) {
	slices.SortStableFunc(turns, func(a, b Turn) int {
		return cmp.Or(cmp.Compare(min(a.Undo, 1), min(b.Undo, 1)), cmp.Compare(a.Number, b.Number), cmp.Compare(a.Undo, b.Undo))
	})
}

// A word is what the session has heard of an effect after its turn had ended.
type word struct {
	key    string
	at     time.Time
	result agent.SettleResult
}

// words reads them from the session's history: whatever is settled there is listed no more.
func words(session chain) (out []word) {
	for _, r := range session.runs {
		asked := map[int64]string{} // by the event that scheduled the question
		for _, e := range r.history.GetEvents() {
			if a := e.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == agent.ActivitySettle {
				var in agent.SettleInput
				if first(a.GetInput(), &in) == nil {
					asked[e.GetEventId()] = in.Settlement.Key
				}
			}
			if w, ok := answer(e, asked); ok {
				out = append(out, w)
			}
		}
	}
	return out
}

// answer reads what came of a question, or of a person's word, which a local activity looks into.
func answer(e *historypb.HistoryEvent, asked map[int64]string) (w word, ok bool) {
	w.at = e.GetEventTime().AsTime()
	switch e.GetEventType() {
	case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
		a := e.GetActivityTaskCompletedEventAttributes()
		w.key = asked[a.GetScheduledEventId()]
		ok = w.key != "" && first(a.GetResult(), &w.result) == nil
	case enumspb.EVENT_TYPE_MARKER_RECORDED:
		a := e.GetMarkerRecordedEventAttributes()
		var data struct{ ActivityType string }
		ok = a.GetFailure() == nil && first(a.GetDetails()["data"], &data) == nil && data.ActivityType == agent.ActivitySettle &&
			first(a.GetDetails()["result"], &w.result) == nil
		w.key = w.result.Key
	}
	return w, ok && w.result.Why == ""
}

// since enters into the ledgers of ended turns what the session has heard of their effects: the words in their order,
// and then how those stand that it still lists.
func since(turns []Turn, words []word, unresolved []agent.Effect) {
	for i := range turns {
		t := &turns[i]
		if !t.Status.Final() {
			continue
		}
		t.Effects = slices.Clone(t.Effects)
		for _, w := range words {
			t.hear(w)
		}
		for _, e := range unresolved {
			if at := t.index(e.Key); at >= 0 {
				t.Effects[at] = e
			}
		}
	}
}

// hear enters a word on an effect whose outcome was not known.
func (t *Turn) hear(w word) {
	i := t.index(w.key)
	if i < 0 || !effect.Unresolved(t.Effects[i]) {
		return
	}
	if w.result.Looked {
		t.Effects[i].Looked = w.result.Result.Evidence
		return
	}
	var l effect.Ledger
	if l.Add(t.Effects[i]) != nil || l.SettleLate(w.key, w.result.Result, w.at, w.result.By) != nil {
		return // what makes no sense for an effect proves nothing about it
	}
	t.Effects[i], _ = l.Get(w.key)
	if of := t.index(t.Effects[i].Undoes); of >= 0 {
		takenBack(&t.Effects[of], w)
	}
}

// takenBack enters how a compensation ended into what it was to undo.
func takenBack(e *agent.Effect, w word) {
	var l effect.Ledger
	if l.Add(*e) == nil {
		l.Undone(e.Key, w.result.Result, w.at, w.result.By)
		*e, _ = l.Get(e.Key)
	}
}

func (t *Turn) index(key string) int {
	return slices.IndexFunc(t.Effects, func(e agent.Effect) bool { return key != "" && e.Key == key })
}
