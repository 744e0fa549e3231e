package approval

import (
	"fmt"
	"strconv"
)

// An ArgumentError says why the arguments of a call cannot be used. Its text is written for the model
// that made them, bounded and in ASCII, foreign bytes quoted.
type ArgumentError struct {
	// Reason says what is wrong and what to mend.
	Reason string
	// At is the offset in bytes from the beginning.
	At int
	// Near is a quoted piece of the text from there, empty at its end.
	Near string
}

// Error returns all of it.
func (e *ArgumentError) Error() string {
	where := "at the end"
	if e.Near != "" {
		where = fmt.Sprintf("at byte %d, near %s", e.At, e.Near)
	}
	return "these arguments cannot be used: " + e.Reason + " (" + where + ")"
}

// quoted returns at most n bytes of s in quotes, pure ASCII.
func quoted[T string | []byte](s T, n int) string {
	cut := ""
	if len(s) > n {
		s, cut = s[:n], "..."
	}
	return strconv.QuoteToASCII(string(s)) + cut
}
