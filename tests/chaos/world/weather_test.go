package world

import (
	"testing"

	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

func TestTheFirstRequestsOfAStormAreTurnedAway(t *testing.T) {
	t.Parallel()
	calm := func(modeltest.Request) modeltest.Step { return modeltest.Say("calm") }
	f, err := Stormy([]cell.Fault{{Kind: cell.Kill, At: "tool.after_send", Nth: 1}, {Kind: cell.Storm, Nth: 2, Arg: "model 429 date"}}, calm)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{429, 429, 0, 0} {
		step := f(modeltest.Request{})
		if step.Status != want || (step.Headers["Retry-After"] != "") != (want != 0) {
			t.Errorf("request %d: %+v", i+1, step)
		}
	}
	if f, err := Stormy([]cell.Fault{{Kind: cell.Storm, Nth: 2, Arg: "destination 429 date"}}, calm); err != nil || f(modeltest.Request{}).Status != 0 {
		t.Errorf("a storm at the destination is the model's: %v", err)
	}
	for _, bad := range []string{"model 42 date", "model 429", "model often date"} {
		if _, err := Stormy([]cell.Fault{{Kind: cell.Storm, Nth: 1, Arg: bad}}, calm); err == nil {
			t.Errorf("%q is a storm", bad)
		}
	}
}
