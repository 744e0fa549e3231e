package agent

import (
	"encoding/json"
	"slices"
)

// A plainToolInput is a ToolInput in the JSON form that its members say.
type plainToolInput ToolInput

// A forkToolInput is the JSON form of a fork's ToolInput. Activities of a run go to the workers of any build, unless
// the run is pinned, and one of before 0.3.0 would drop the root, claim the intent apart from the family's, and send
// what the family has sent. It cannot read a reset that is a list, fails, and leaves the action to another worker.
type forkToolInput struct {
	plainToolInput
	Reset []bool `json:"reset"`
}

// MarshalJSON writes a fork's input so that builds which know of no forks refuse it.
func (in ToolInput) MarshalJSON() ([]byte, error) {
	if in.Root == nil {
		return json.Marshal(plainToolInput(in))
	}
	return json.Marshal(forkToolInput{plainToolInput(in), []bool{in.Reset}})
}

// UnmarshalJSON reads either form.
func (in *ToolInput) UnmarshalJSON(b []byte) error {
	var kind struct {
		Root *Scope `json:"root"`
	}
	switch err := json.Unmarshal(b, &kind); {
	case err != nil:
		return err
	case kind.Root == nil:
		return json.Unmarshal(b, (*plainToolInput)(in))
	}
	var f forkToolInput
	if err := json.Unmarshal(b, &f); err != nil {
		return err
	}
	*in = ToolInput(f.plainToolInput)
	in.Reset = slices.Contains(f.Reset, true)
	return nil
}
