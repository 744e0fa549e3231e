// Package policy decides what an agent may do: allow, ask a person, or deny.
//
// A decision is a pure function of the policy and the request; it is made in the model activity and
// recorded, so that a replay never decides again. The package owns rules and verdicts, and must not know
// how they are admitted, stored or shown.
package policy
