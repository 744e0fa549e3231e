package agent

import (
	"encoding/json"
	"fmt"
	"time"
)

// A Duration is a time.Duration whose JSON form a person can read, such as "1m30s".
type Duration time.Duration

// String returns the form that time.Duration prints.
func (d Duration) String() string { return time.Duration(d).String() }

// Std returns d as a time.Duration.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// MarshalJSON writes the form that [time.ParseDuration] reads.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(d.String()) }

// UnmarshalJSON reads that form; a bare number is refused because its unit would be a guess.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("duration %s: want text such as \"30s\"", b)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("duration %q: want text such as \"30s\"", s)
	}
	*d = Duration(v)
	return nil
}
