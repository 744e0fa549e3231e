package report

import "time"

// A Report is all that a run of the harness found out. What can be counted from the rows is counted when it is
// written, and is no field.
type Report struct {
	When       time.Time     `json:"when"`
	Commit     string        `json:"commit"`
	CPUs       int           `json:"cpus"`
	Took       time.Duration `json:"took_ns"`
	Bound      time.Duration `json:"bound_ns"`   // by when whoever takes over from a killed worker must have made progress
	Boundaries []string      `json:"boundaries"` // every one there is, in the order in which a turn passes them
	Rows       []Row         `json:"rows"`       // in any order
	LeftOut    []Omission    `json:"left_out"`
	Asked      int           `json:"asked"`            // how many cells were to be run
	Failed     []string      `json:"failed,omitempty"` // cells of which the harness learned nothing
	Invariants []Invariant   `json:"invariants"`
	Window     *Width        `json:"window,omitempty"`
	Soak       *Soak         `json:"soak,omitempty"`
}

// An Omission is a kind of cell that is not in the table, and why. An empty field means each.
type Omission struct {
	Boundary    string `json:"boundary,omitempty"`
	Fault       string `json:"fault,omitempty"`
	Destination string `json:"destination,omitempty"`
	Why         string `json:"why"`
}

// An Invariant is one thing that must hold, and in how many runs it was looked at. In how many it was broken is counted
// from the rows, whose violations begin with its name.
type Invariant struct {
	Name    string `json:"name"`
	Says    string `json:"says"`
	Checked int    `json:"checked"`
}

// A Soak is what became of random schedules. Only those that failed are kept.
type Soak struct {
	Seed     string        `json:"seed"`
	Commit   string        `json:"commit"` // it can be another run than the table's
	Took     time.Duration `json:"took_ns"`
	Total    Totals        `json:"total"`
	Failures []Failure     `json:"failures"`
}

// A Failure is a random schedule that broke an invariant.
type Failure struct {
	Again string `json:"again"` // the flags that run it again
	Row   Row    `json:"row"`
}

// Add counts a schedule, and keeps it if it broke something. again are the flags that run it again.
func (s *Soak) Add(again string, r Row) {
	s.Total.add(r)
	if len(r.Violations) > 0 {
		s.Failures = append(s.Failures, Failure{again, r})
	}
}

// Totals are rows in sum.
type Totals struct {
	Cells      int `json:"cells"`
	Expected   int `json:"expected"`
	Applied    int `json:"applied"`
	Duplicates int `json:"duplicates"`
	Lost       int `json:"lost"`
	Uncertain  int `json:"uncertain"` // effects that the ledger shows as such
	Extra      int `json:"extra_model_calls"`
	Violated   int `json:"violated"` // cells in which an invariant is broken
	Idle       int `json:"idle"`     // cells whose fault did not happen
}

// Sum adds rows up. Those of the window are left to the caller.
func Sum(rows []Row) Totals {
	var t Totals
	for _, r := range rows {
		t.add(r)
	}
	return t
}

func (t *Totals) add(r Row) {
	t.Cells++
	t.Expected += r.Expected
	t.Applied += r.Applied
	t.Duplicates += r.Duplicates
	t.Lost += r.Lost
	t.Uncertain += r.Ledger["uncertain"]
	t.Extra += r.Extra
	if len(r.Violations) > 0 {
		t.Violated++
	}
	if !r.Struck {
		t.Idle++
	}
}

// plain are the rows that the plain loop has too, as if they were the plain loop's.
func plain(rows []Row) []Row {
	var out []Row
	for _, r := range rows {
		if n := r.Naive; n != nil {
			out = append(out, Row{
				Expected: r.Expected, Applied: n.Applied, Duplicates: n.Duplicates, Lost: n.Lost, Extra: n.Extra, Struck: r.Struck,
			})
		}
	}
	return out
}

// split tells the rows that the promise covers from those of the window, which it does not.
func split(rows []Row) (promised, window []Row) {
	for _, r := range rows {
		if r.Expect == "window" {
			window = append(window, r)
		} else {
			promised = append(promised, r)
		}
	}
	return promised, window
}
