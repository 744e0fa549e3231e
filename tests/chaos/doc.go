// Command chaos tries to break the promise: it kills, freezes and lies to real workers on a real Temporal server at named
// boundaries, compares what four witnesses say afterwards, and prints a table. See docs/proof.md.
//
//	chaos            the whole table, once
//	chaos -quick     a representative tenth of it
//	chaos -soak 500  random schedules; -seed makes them those of another day
//	chaos -only TEXT the cells whose name contains the text; -list prints the names
//
// It exits with 0 when nothing was violated, with 1 when something was, and with 2 when it could not look.
package main
