// Package approval gives an action its identity: the canonical text of its arguments, the digest that a
// person approves, the digest that finds the same intent again, and a form that is safe to show.
//
// It is pure: no I/O, no clock, no configuration. It owns the rules by which two texts are the same
// action; what may be done is policy's, and what was done is the effect ledger's.
//
// The scanner is ours because encoding/json repairs silently: it replaces invalid UTF-8 and lone
// surrogates by U+FFFD and takes the last of two equal keys, so that two different texts would share a
// digest, and what a person approved would not be what runs.
package approval
