package run

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
	"github.com/holdfast-run/holdfast/tests/chaos/witness"
)

// What a user says. The model's script goes by it.
const (
	wish   = "Refund what was broken."
	thanks = "Thank you."
)

// A payment is one that the model asks for.
type payment struct{ order, amount string }

// payments are what each scenario's model asks for, one in each step.
var payments = map[cell.Scenario][]payment{
	cell.Pay:  {{"42", "19.90"}, {"43", "29.90"}},
	cell.Undo: {{"42", "19.90"}, {"43", "29.90"}, {"44", "99.00"}},
}

// script is the model: it looks an order up, asks for the payments one after the other, and says what became of each,
// so that its answer differs when a result does.
func script(s cell.Scenario, pay string) modeltest.Func {
	wanted := payments[s]
	return func(q modeltest.Request) modeltest.Step {
		if strings.HasSuffix(q.User(), thanks) { // behind a gap it is told of that first
			return modeltest.Say("You are welcome.")
		}
		heard := q.Results()
		switch {
		case len(heard) == 0:
			return modeltest.Want(modeltest.Call{ID: "call_look", Name: "lookup_order", Args: `{"id":"42"}`})
		case len(heard) <= len(wanted):
			p := wanted[len(heard)-1]
			return modeltest.Want(modeltest.Call{
				ID: fmt.Sprintf("call_%d", len(heard)), Name: pay, Args: fmt.Sprintf(`{"order":%q,"amount":%q}`, p.order, p.amount),
			})
		}
		var said []string
		for i, p := range wanted {
			said = append(said, p.order+" "+verdict(heard[i+1]))
		}
		return modeltest.Say(strings.Join(said, ", ") + ".")
	}
}

// verdict is what a model makes of the result of a payment.
func verdict(result string) string {
	if strings.Contains(result, `"refund"`) || strings.HasPrefix(result, "refunded ") || strings.Contains(result, `"made":true`) {
		return "is refunded"
	}
	return "is not known to be refunded"
}

// scripted says in what an undisturbed run is not what its scenario's script says: it is what all others are held
// against.
func scripted(s cell.Scenario, got witness.Story) error {
	var made, wanted []string
	for _, e := range got.Made {
		made = append(made, strings.TrimSpace(e.Order+" "+e.Amount+" "+e.Voids))
	}
	switch s {
	case cell.Pay:
		wanted = []string{"42 19.90", "43 29.90"}
	case cell.Undo:
		wanted = []string{"42 19.90", "43 29.90", "43 29.90 re_2", "42 19.90 re_1"}
	}
	answers := len(payments[s]) + turns(s) // the order is looked up first, and the last payment of Undo is not answered
	if s == cell.Pay {
		answers++
	}
	if !slices.Equal(made, wanted) || got.Charges != answers || len(got.Unresolved) > 0 {
		return fmt.Errorf("an undisturbed run made %q, for %d answers of the model, and left %d effects to people; want %q for %d, and none",
			made, got.Charges, len(got.Unresolved), wanted, answers)
	}
	return nil
}
