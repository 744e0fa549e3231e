package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

// olderToolInput is what builds of before there were forks read of it.
type olderToolInput struct {
	Tool  string `json:"tool"`
	Reset bool   `json:"reset"`
}

func TestOlderBuildsRefuseTheActionOfAForkAndNoOther(t *testing.T) {
	t.Parallel()
	for _, reset := range []bool{false, true} {
		in := agent.ToolInput{
			Scope: agent.Scope{Session: "s", Life: "01234567"}, Place: agent.Place{Turn: 1, Step: 2, Call: 3},
			Tool: "pay", Args: "{}", Reset: reset, Store: "store", Serial: 4,
		}
		for _, root := range []*agent.Scope{nil, {Session: "root", Life: "76543210"}} {
			in.Root = root
			b, err := json.Marshal(in)
			if err != nil {
				t.Fatal(err)
			}
			var got agent.ToolInput
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(in, got); diff != "" {
				t.Error(diff)
			}
			var older olderToolInput
			if err := json.Unmarshal(b, &older); (err != nil) != (root != nil) || root == nil && older.Reset != reset {
				t.Errorf("an older build reads %s as %+v, %v", b, older, err)
			}
		}
	}
}

func FuzzToolInput(f *testing.F) {
	f.Add([]byte(`{"session":"s","life":"01234567","turn":1,"reset":true}`))
	f.Add([]byte(`{"session":"s","root":{"session":"r","life":"01234567"},"reset":[false]}`))
	f.Add([]byte(`{"root":null,"reset":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var in, again agent.ToolInput
		if json.Unmarshal(b, &in) != nil {
			return
		}
		out, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(out, &again); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	})
}
