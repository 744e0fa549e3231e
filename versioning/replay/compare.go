package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// compare holds what the code asked for against history. When Temporal's replay has stopped the code half way,
// what it would have asked for later is not told as missing.
func compare(h *historypb.History, w *watch, stopped bool) []Difference {
	until := int64(math.MaxInt64)
	if stopped {
		until = w.last
	}
	var out []Difference
	past := recorded(h)
	for _, k := range []kind{kindActivity, kindLocal, kindTimer, kindChild, kindSignal, kindAttributes} {
		out = append(out, commands(past[k], w.asked[k], until)...)
	}
	out = append(out, updates(h, w)...)
	if !stopped {
		out = append(out, changes(h, w)...)
		out = append(out, ends(h, w)...)
	}
	slices.SortStableFunc(out, func(a, b Difference) int { return cmp.Compare(a.Event, b.Event) })
	return out
}

// commands compares those of one kind in order, up to those of a workflow task. Where they part, the task says
// which side has one too many: also of the same ones, where Temporal's replay has stopped. What the code asked for and
// cancelled before Temporal heard of it left no event.
func commands(past, now []command, until int64) []Difference {
	var out []Difference
	for len(past) > 0 && len(now) > 0 {
		p, n := past[0], now[0]
		switch {
		case p.same(n) && (p.task == n.task || p.kind == kindLocal || until == math.MaxInt64):
			past, now = past[1:], now[1:]
		case n.dropped() && len(now) > len(past):
			now = now[1:]
		case n.task < p.task:
			out, now = append(out, unheard(n)), now[1:]
		case n.task > p.task:
			out, past = append(out, unasked(p)), past[1:]
		default:
			out = append(out, unequal(p, n)...)
			past, now = past[1:], now[1:]
		}
	}
	for _, c := range past {
		if c.task <= until {
			out = append(out, unasked(c))
		}
	}
	for _, c := range now {
		if !c.dropped() {
			out = append(out, unheard(c))
		}
	}
	return out
}

// unasked is a command of history that the code does not issue.
func unasked(c command) Difference {
	return Difference{Event: c.event, What: c.title(), Recorded: c.String(), Now: nothing}
}

// unheard is a command of the code that history does not hold: it would stand behind the end of its task.
func unheard(c command) Difference {
	return Difference{Event: c.task + 1, What: c.title(), Recorded: nothing, Now: c.String()}
}

func unequal(past, now command) []Difference {
	if past.title() != now.title() {
		return []Difference{{Event: past.event, What: string(past.kind), Recorded: past.String(), Now: now.String()}}
	}
	var out []Difference
	for i, f := range past.fields {
		if !f.same(now.fields[i]) {
			out = append(out, differ(past.event, past.title()+": "+f.name, f.value, now.fields[i].value)...)
		}
	}
	return out
}

// updates compares the answers that updates gave.
func updates(h *historypb.History, w *watch) []Difference {
	var out []Difference
	for _, e := range h.GetEvents() {
		if e.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED {
			continue
		}
		a := e.GetWorkflowExecutionUpdateCompletedEventAttributes()
		now, answered := w.updates[a.GetMeta().GetUpdateId()]
		if !answered {
			continue // Temporal's replay says so
		}
		past := ending{how: endCompleted, with: payloads(a.GetOutcome().GetSuccess())}
		if f := a.GetOutcome().GetFailure(); f != nil {
			past.how, past.with = endFailed, failure(f)
		}
		out = append(out, unequalEnds(e.GetEventId(), fmt.Sprintf("%s%q", whatUpdate, a.GetMeta().GetUpdateId()), past, now)...)
	}
	return out
}

// changes wants the code to know each change id that history carries: one that it never asks for reads as the
// oldest code under its new name.
func changes(h *historypb.History, w *watch) []Difference {
	past := versions(h)
	var out []Difference
	for _, event := range keys(past) {
		if id := past[event]; !w.changes[id] {
			out = append(out, Difference{
				Event: event, What: whatChange, Recorded: id,
				Now: nothing + "; a change id is never renamed or removed while runs carry it",
			})
		}
	}
	return out
}

func ends(h *historypb.History, w *watch) []Difference {
	past, ended := recordedEnd(h)
	switch {
	case ended && w.end == nil:
		return []Difference{{Event: past.event, What: whatEnd, Recorded: past.how, Now: "the run goes on"}}
	case !ended && w.end != nil:
		return []Difference{{Event: past.event, What: whatEnd, Recorded: "the run goes on", Now: w.end.how}}
	case !ended:
		return nil
	}
	return unequalEnds(past.event, whatEnd, past, *w.end)
}

func unequalEnds(event int64, what string, past, now ending) []Difference {
	switch {
	case past.how != now.how:
		return []Difference{{Event: event, What: what, Recorded: past.how, Now: now.how + " " + now.with}}
	case !sameValue(past.with, now.with):
		return differ(event, what+": "+past.how, past.with, now.with)
	}
	return nil
}
