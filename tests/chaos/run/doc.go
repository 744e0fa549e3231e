// Package run makes one cell of the chaos harness happen: it starts the workers, lets the people of the scenario speak,
// does what goes wrong, waits until everybody has had their say, and has the witnesses judged.
package run
