// Package expr evaluates the CEL expressions of declarations over JSON that comes from elsewhere.
//
// Numbers are exact or an error: an integer is an int (or a uint), any other number a double if a double keeps
// every digit of it, else a value that fails the expression which looks at it. An expression that only names a place
// in its input gives what stands there as it is written. What an evaluation may cost is bounded.
package expr
