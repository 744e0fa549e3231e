package run

import (
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
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
