package policy

import "fmt"

// A RuleError says what is wrong with one place of a policy. [New] joins one for each place.
type RuleError struct {
	// Path is the place, relative to the configuration's policy: "rules/2/when",
	// "agents/support/rules/0/then", "approvers/alice/keys/0", "approval/by/1".
	Path string
	// Rule is the name of the rule, "" where no rule is meant.
	Rule string
	// Line and Column are the position in a condition, from 1; 0 where no condition is meant.
	Line, Column int
	Text         string
}

// Error returns all of it.
func (e *RuleError) Error() string {
	s := "policy " + e.Path
	if e.Rule != "" {
		s += fmt.Sprintf(" (rule %q)", e.Rule)
	}
	if e.Line > 0 {
		s += fmt.Sprintf(", line %d, column %d", e.Line, e.Column)
	}
	return s + ": " + e.Text
}

// A Refused error says why a person's word does not count. Its text is for that person and for the record.
type Refused struct{ Why string }

// Error returns Why.
func (e *Refused) Error() string { return e.Why }

func refuse(format string, args ...any) error { return &Refused{Why: fmt.Sprintf(format, args...)} }
