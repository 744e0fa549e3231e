package modeltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

// A Case is one entry of turns.json: an odd way for a model to behave and what must come of it.
type Case struct {
	ID   string `json:"id"`
	Area string `json:"area"`
	// Tools are those that the model uses in it.
	Tools []string `json:"tools"`
	Steps []Step   `json:"steps"`
	// Expect says in words what must happen.
	Expect string           `json:"expect"`
	Calls  map[string]Range `json:"calls"`
	Final  OneOf            `json:"final"`
	// MaxRequests bounds how often the model may be asked; 0 when the case does not say.
	MaxRequests int `json:"max_requests"`
	// Stream forces how the client asks; nil leaves it free.
	Stream *bool `json:"stream"`
}

// A Range is how often a tool's body may run: in the file a number, or the least and the most.
type Range struct{ Min, Max int }

// OneOf lists the allowed ends of a turn: in the file a string or a list.
type OneOf []string

// Load reads the cases of a file such as turns.json.
func Load(path string) ([]Case, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cases: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields() // a member that is not played would make a test say less than it seems to
	var cases []Case
	if err := d.Decode(&cases); err != nil {
		return nil, fmt.Errorf("cases %q: %w", path, err)
	}
	return cases, nil
}

// Streams says how the case's client has to ask, given how it would.
func (c Case) Streams(otherwise bool) bool {
	if c.Stream != nil {
		return *c.Stream
	}
	return otherwise
}

// Allows says whether n runs are in the range.
func (r Range) Allows(n int) bool { return r.Min <= n && n <= r.Max }

// UnmarshalJSON reads 2 or [0, 2].
func (r *Range) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		var pair [2]int
		if err := json.Unmarshal(b, &pair); err != nil {
			return err
		}
		r.Min, r.Max = pair[0], pair[1]
		return nil
	}
	err := json.Unmarshal(b, &r.Min)
	r.Max = r.Min
	return err
}

// UnmarshalJSON reads "done" or ["done", "failed"].
func (o *OneOf) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(o))
	}
	*o = make(OneOf, 1)
	return json.Unmarshal(b, &(*o)[0])
}
