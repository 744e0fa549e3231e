package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/report"
	"github.com/holdfast-run/holdfast/tests/chaos/run"
	"github.com/holdfast-run/holdfast/tests/chaos/witness"
)

// result writes what was found out, also when somebody stopped the run in the middle, and says whether it is bad.
func (s *session) result(ctx context.Context) error {
	r := s.describe(ctx)
	err := errors.Join(save(s.markdown, os.Stdout, r, report.Markdown), save(s.json, nil, r, report.JSON))
	switch {
	case err != nil:
		return err
	case s.violated > 0:
		return errViolated
	case len(s.failures) > 0:
		return fmt.Errorf("the harness failed in %d cells: %s", len(s.failures), strings.Join(s.failures, ", "))
	}
	return nil
}

func (s *session) describe(ctx context.Context) report.Report {
	took := time.Since(s.began)
	r := report.Report{
		When: s.began, Commit: commit(ctx), CPUs: runtime.NumCPU(), Took: took, Bound: run.Takeover,
		Rows: s.rows, Asked: s.asked, Failed: s.failures, Window: report.WidthOf(s.lab.Widths()),
	}
	for _, p := range failpoint.Points() {
		r.Boundaries = append(r.Boundaries, p.Name)
	}
	for _, o := range cell.LeftOut() {
		r.LeftOut = append(r.LeftOut, report.Omission{Boundary: o.Boundary, Fault: o.Fault, Destination: o.Destination, Why: o.Why})
	}
	for _, v := range witness.Invariants() {
		n := max(len(s.rows), s.soaked.Total.Cells)
		if v.Name == "attention" {
			n = s.driver.Looked()
		}
		r.Invariants = append(r.Invariants, report.Invariant{Name: v.Name, Says: v.Sentence, Checked: n})
	}
	if s.random() {
		s.soaked.Seed, s.soaked.Commit, s.soaked.Took = fmt.Sprint(s.seed), r.Commit, took
		r.Soak = &s.soaked
	}
	return r
}

// again writes a saved table anew, together with a saved soak.
func (o options) again() error {
	r, err := load(o.render)
	if err == nil && o.soaked != "" {
		var s report.Report
		s, err = load(o.soaked)
		r.Soak = s.Soak
	}
	if err != nil {
		return err
	}
	return errors.Join(save(o.markdown, os.Stdout, r, report.Markdown), save(o.json, nil, r, report.JSON))
}

func load(path string) (report.Report, error) {
	f, err := os.Open(path)
	if err != nil {
		return report.Report{}, err
	}
	defer f.Close()
	return report.ParseJSON(f)
}

// commit names what was tried, as well as it is known here.
func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// save writes a form of the report to a file, or to w without one.
func save(path string, w io.Writer, r report.Report, write func(io.Writer, report.Report) error) error {
	if path == "" {
		if w == nil {
			return nil
		}
		return write(w, r)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f, r), f.Close())
}

// list prints the names of the cells, and what is left out.
func list(w io.Writer) error {
	for _, c := range cell.All() {
		mark := ""
		if c.Quick {
			mark = "  (quick)"
		}
		fmt.Fprintln(w, c.Name()+mark)
	}
	fmt.Fprintln(w, "\nLeft out:")
	for _, o := range cell.LeftOut() {
		fmt.Fprintf(w, "%s, %s, %s\n    %s\n", cmp.Or(o.Boundary, "every boundary"), cmp.Or(o.Fault, "every fault"),
			cmp.Or(o.Destination, "every destination"), o.Why)
	}
	return nil
}
