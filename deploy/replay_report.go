package deploy

import (
	"cmp"
	"errors"
	"slices"

	"github.com/holdfast-run/holdfast/versioning/replay"
)

// A Report is what a replay of many histories found.
type Report struct {
	Types    []TypeReport `json:"types"`              // of the histories that were replayed, by type
	Failures []Failure    `json:"failures,omitempty"` // that this build does not replay
	Unread   []Unread     `json:"unread,omitempty"`   // that could not be looked at
	// NotRun counts runs whose code has not run yet: this build cannot do anything otherwise.
	NotRun int `json:"notRun,omitempty"`
	Total  int `json:"total"`

	known int // how many there are, as far as that is known
}

// A TypeReport counts the replayed histories of one workflow type.
type TypeReport struct {
	Type   string `json:"type"`
	Runs   int    `json:"runs"`
	Passed int    `json:"passed"`
	Failed int    `json:"failed"`
	// Numbers counts them by their change number, 0 for those without one.
	Numbers map[int]int `json:"numbers"`
}

// A Failure is a history that this build does not replay.
type Failure struct {
	Source   string           `json:"source"`
	Workflow string           `json:"workflow"`
	Run      string           `json:"run,omitempty"`
	Type     string           `json:"type"`
	Number   int              `json:"number,omitempty"` // the run's change number
	Build    string           `json:"build,omitempty"`  // that wrote what differs first
	Findings []replay.Finding `json:"findings"`
}

// An Unread is a history that could not be looked at.
type Unread struct {
	Source   string `json:"source"`
	Workflow string `json:"workflow,omitempty"`
	Run      string `json:"run,omitempty"`
	Type     string `json:"type,omitempty"`
	Reason   string `json:"reason"`
}

// OK says that this build can go on with all there is. What could not be looked at is not OK; that there was nothing
// at all is.
func (r Report) OK() bool { return len(r.Failures) == 0 && len(r.Unread) == 0 }

// Replayed counts the histories that were replayed, whatever came of it.
func (r Report) Replayed() (n int) {
	for _, t := range r.Types {
		n += t.Runs
	}
	return n
}

func newReport() *Report { return &Report{Types: []TypeReport{}} }

func (r *Report) add(i Item) {
	r.Total++
	var m *replay.Mismatch
	switch {
	case errors.Is(i.Err, replay.ErrNotRun):
		r.NotRun++
	case errors.As(i.Err, &m):
		t := r.of(i)
		t.Failed++
		r.Failures = append(r.Failures, Failure{
			Source: i.Source, Workflow: i.Workflow, Run: i.Run, Type: i.Type, Number: m.Change, Build: m.Build, Findings: replay.Explain(m),
		})
	case i.Err != nil:
		r.Unread = append(r.Unread, Unread{Source: i.Source, Workflow: i.Workflow, Run: i.Run, Type: i.Type, Reason: i.Err.Error()})
	default:
		r.of(i).Passed++
	}
}

// of counts a replayed history in.
func (r *Report) of(i Item) *TypeReport {
	at := slices.IndexFunc(r.Types, func(t TypeReport) bool { return t.Type == i.Type })
	if at < 0 {
		at = len(r.Types)
		r.Types = append(r.Types, TypeReport{Type: i.Type, Numbers: map[int]int{}})
	}
	t := &r.Types[at]
	t.Runs++
	t.Numbers[i.Replayed.Change]++
	return t
}

// sorted returns the report in an order that does not depend on which replay ended first.
func (r *Report) sorted() Report {
	slices.SortFunc(r.Types, func(a, b TypeReport) int { return cmp.Compare(a.Type, b.Type) })
	slices.SortFunc(r.Failures, func(a, b Failure) int { return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Run, b.Run)) })
	slices.SortFunc(r.Unread, func(a, b Unread) int { return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Run, b.Run)) })
	return *r
}
