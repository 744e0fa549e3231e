package demo

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
)

const (
	price = payments.Amount(1990)
	// thinking makes the script slow enough to be followed by a person.
	thinking = 700 * time.Millisecond
)

// script is the model: it looks the order up, refunds it and says what came of it. It decides by what it was sent and
// keeps no state, as a model would.
func script(r modeltest.Request) modeltest.Step {
	results := r.Results()
	switch {
	case len(results) == 0:
		return modeltest.Want(modeltest.Call{ID: "call_lookup", Name: "lookup_order", Args: fmt.Sprintf(`{"order":%q}`, order)})
	case len(results) == 1:
		return modeltest.Want(modeltest.Call{ID: "call_refund", Name: "refund", Args: fmt.Sprintf(`{"order":%q,"amount":%q}`, order, price)})
	case !strings.Contains(results[1], `"refund"`): // no receipt
		return modeltest.Say(fmt.Sprintf("I could not refund order %s: it was not approved.", order))
	default:
		return modeltest.Say(fmt.Sprintf("Order %s has been refunded: %s is on its way back to you.", order, price))
	}
}
