package effect

import (
	"encoding/json"
	"fmt"

	"github.com/holdfast-run/holdfast/agent"
)

type ledgerJSON struct {
	Effects []agent.Effect `json:"effects,omitempty"`
	Folded  []agent.Count  `json:"folded,omitempty"`
}

// MarshalJSON writes the form that continue-as-new carries.
func (l Ledger) MarshalJSON() ([]byte, error) {
	return json.Marshal(ledgerJSON{Effects: l.effects, Folded: l.folded})
}

// UnmarshalJSON reads that form. It refuses a state that it does not know and a key that is there twice
// rather than carry on with a ledger that means something else.
func (l *Ledger) UnmarshalJSON(b []byte) error {
	var in ledgerJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("effect ledger: %w", err)
	}
	out := Ledger{}
	for _, c := range in.Folded {
		if !known(c.State) || Open(c.State) || c.N < 1 {
			return fmt.Errorf("effect ledger: %d effects cannot be folded as %q", c.N, c.State)
		}
		out.folded = append(out.folded, c)
	}
	for _, e := range in.Effects {
		if err := out.Add(e); err != nil {
			return fmt.Errorf("effect ledger: %w", err)
		}
	}
	*l = out
	return nil
}
