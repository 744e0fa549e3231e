package run

import (
	"context"
	"fmt"

	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/naive"
	"github.com/holdfast-run/holdfast/tests/chaos/report"
)

// plain is what becomes of the cell under the plain loop, nil where that has no such moment. It knows no declarations of
// tools, so cells that differ in nothing else share a run.
func (d *Driver) plain(ctx context.Context, c cell.Cell) (*report.Naive, error) {
	if !d.Plain || d.Random || !naive.Has(c) {
		return nil, nil
	}
	return d.naive.of(naive.Key(c), func() (*report.Naive, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		paid := payments[c.Scenario]
		out, err := naive.Run(ctx, d.Lab, fmt.Sprintf("n%d", d.count.Add(1)), c, naive.Scene{
			Says: []string{wish, thanks}[:turns(c.Scenario)], Model: script(c.Scenario, "pay"),
			Payments: len(paid), Answers: len(paid) + turns(c.Scenario) + 1, // the order is looked up first
		})
		return &out, err
	})
}
