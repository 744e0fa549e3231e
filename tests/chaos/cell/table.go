package cell

import "slices"

// A group is the cells of one concern.
type group struct {
	name  string
	cells []Cell
}

// groups is the table.
func groups() []group {
	return []group{
		{"tool", toolCells()},
		{"approved", approvedCells()},
		{"model", modelCells()},
		{"approval", approvalCells()},
		{"undo", undoCells()},
		{"activity", activityCells()},
		{"task", taskCells()},
		{"store", storeCells()},
		{"damage", damageCells()},
		{"lost", lostCells()},
		{"storm", stormCells()},
		{"link", linkCells()},
		{"clock", clockCells()},
		{"policy", policyCells()},
		{"build", buildCells()},
		{"word", wordCells()},
		{"renewal", renewalCells()},
	}
}

// All returns every cell of the table, always in the same order.
func All() []Cell {
	quick := quick()
	var out []Cell
	for _, g := range groups() {
		for _, c := range g.cells {
			c.Quick = slices.Contains(quick, c.Name())
			out = append(out, c)
		}
	}
	return out
}
