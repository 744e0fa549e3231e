// Package effect is the ledger: what became of each action that may have changed the world.
//
// [Can] alone decides which transitions there are; [Ledger] keeps the effects of one run and refuses
// every other. It is deterministic, for use inside workflows: no clock, no I/O, no map is ranged over.
// It owns the states and their order, and must not know policy, tools or where records are stored.
package effect
