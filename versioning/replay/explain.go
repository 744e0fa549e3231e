package replay

import (
	"errors"
	"slices"
	"strings"

	"github.com/holdfast-run/holdfast/versioning"
)

// A Finding is one place where a history and a build part, in words for the person who has to decide.
type Finding struct {
	// Event is the event of the history, or the one behind which it lacks something; 0 when that is not known.
	Event    int64  `json:"event,omitempty"`
	Wanted   string `json:"wanted,omitempty"`   // what the code asks for
	Recorded string `json:"recorded,omitempty"` // what history holds
	Cause    string `json:"cause"`
	Advice   string `json:"advice,omitempty"`
}

// Explain says in words what [Replayer.Replay] or [Replayer.Run] returned, in the order of history: the first is where
// they part, and what follows may come of it. There are at most 20. It is nil for no error and for [ErrNotRun].
func Explain(err error) []Finding {
	var m *Mismatch
	var payload *PayloadError
	switch {
	case err == nil || errors.Is(err, ErrNotRun):
		return nil
	case errors.As(err, &m):
		return m.findings()
	case errors.As(err, &payload):
		cause, advice, _ := strings.Cut(payload.Reason, "; ")
		return []Finding{{Event: payload.Event, Cause: "a payload cannot be read: " + cause, Advice: advice}}
	}
	if f, ok := ExplainText(err.Error()); ok {
		return []Finding{f}
	}
	return []Finding{{Cause: clip(err.Error(), maxTemporal), Advice: "record the history anew: temporal workflow show -o json"}}
}

func (m *Mismatch) findings() []Finding {
	stop, ok := m.stopped()
	if ok && (stop.whole || len(m.Differences) == 0) {
		return []Finding{stop.Finding}
	}
	out := make([]Finding, 0, min(len(m.Differences), maxShown))
	for _, d := range m.Differences[:cap(out)] {
		f := d.finding()
		if swapped(m.Differences, d) {
			f.Cause = "the same commands come in another order"
		}
		f.Advice = m.advice()
		out = append(out, f)
	}
	return out
}

// swapped says whether another difference is the same the other way round.
func swapped(all []Difference, d Difference) bool {
	return slices.ContainsFunc(all, func(e Difference) bool {
		return e.What == d.What && e.Recorded == d.Now && e.Now == d.Recorded && d.Recorded != nothing && d.Now != nothing
	})
}

// stopped says what Temporal's replay stumbled over; ok is false when it went all the way.
func (m *Mismatch) stopped() (r reading, ok bool) {
	if m.Temporal == nil || strings.HasPrefix(m.Temporal.Error(), otherEnd) {
		return reading{}, false
	}
	r, ok = explainText(m.Temporal.Error(), thisBuild)
	if !ok {
		r = reading{whole: true, Finding: Finding{
			Wanted: "nothing: its code fails", Cause: "the workflow's code fails on this history: " + clip(m.Temporal.Error(), maxClipped),
			Advice: "mend the code, or let " + m.others(),
		}}
	}
	if m.found.event != 0 {
		r.Event, r.Recorded = m.found.event, clip(m.found.what, maxClipped)
	}
	switch {
	case r.Event != 0:
	case r.number && m.marker != 0:
		r.Event = m.marker
	case r.carried || r.number:
		r.Event = 1 // what was carried into the run is there, and what has no place belongs there
	case len(m.Differences) > 0:
		r.Event = m.Differences[0].Event
	default:
		r.Event = m.reached
	}
	if r.Advice == "" {
		r.Advice = m.advice()
	}
	return r, true
}

// advice is what to do about a command that differs.
func (m *Mismatch) advice() string {
	under := "a number"
	if versioning.Bounds(m.Type).Newest != 0 {
		under = "the next number of " + m.Type
	}
	return "put the change under " + under + " in versioning/table.go, with the old code kept for runs like this one, or let " + m.others()
}

// others are who can go on with the run as things are.
func (m *Mismatch) others() string {
	if m.Build != "" {
		return "a worker of the build that wrote it, " + m.Build + ", go on"
	}
	return "a worker of the build that wrote it go on"
}

// finding says what a difference means.
func (d Difference) finding() Finding {
	f := Finding{Event: d.Event, Recorded: clip(d.Recorded, maxClipped), Wanted: clip(d.Now, maxClipped)}
	switch {
	case d.What == whatEnd:
		f.Cause = "the run ends otherwise, or elsewhere"
		return f
	case strings.HasPrefix(d.What, whatEnd):
		f.Cause = "the run ends with something else"
	case strings.HasPrefix(d.What, whatUpdate):
		f.Cause = "an update is answered otherwise"
	case d.What == whatChange:
		f.Recorded, f.Wanted = "change id "+f.Recorded, nothing
		f.Cause = "the change id was renamed or removed, so that runs which carry it read as the oldest code"
		return f
	case strings.Contains(d.What, ": "):
		f.Cause = "the command is the same and says something else: what it is made from has changed"
	case d.Recorded == nothing:
		f.Cause = "a command was added, or comes sooner than it did"
		return f
	case d.Now == nothing:
		f.Cause = "a command was removed, or comes later than it did"
		return f
	default:
		f.Cause = "another command stands in its place: it was renamed, or the order has changed"
		return f
	}
	f.Recorded, f.Wanted = d.What+" "+f.Recorded, d.What+" "+f.Wanted
	return f
}
