// Package compensation makes the call that undoes an effect: how the arguments of the compensating tool follow
// from the arguments and the result of the original.
//
// It runs nothing and decides nothing. Which effects are undone, in which order and by whose authority, is the
// business of the turn and of policy; the compensating call is an effect with a key of its own.
package compensation
