package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

// A Go function becomes a tool by its types: the schema that the model sees comes from the struct.
func ExampleNew() {
	type input struct {
		Order  string      `json:"order" jsonschema:"the order's number"`
		Amount json.Number `json:"amount" jsonschema:"how much, in euros"`
	}
	refund, err := tool.New(tool.Spec{
		Name:        "refund",
		Description: "Pays an order back.",
		Class:       agent.ClassIdempotent, // the bank honours the key
	}, func(_ context.Context, c tool.Call, in input) (string, error) {
		return fmt.Sprintf("refunded %s for order %s under %s", in.Amount, in.Order, c.Key), nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(refund.Spec().Parameters))
	result, err := refund.Do(context.Background(), tool.Call{Key: "k1", Args: `{"amount":12.50,"order":"42"}`})
	fmt.Println(string(result.Data), err)
	// Output:
	// {"type":"object","properties":{"order":{"type":"string","description":"the order's number"},"amount":{"type":"number","description":"how much, in euros"}},"required":["order","amount"],"additionalProperties":false}
	// refunded 12.50 for order 42 under k1 <nil>
}

// What an error means decides whether a call may be sent again, so say it where it is known.
func ExampleFailed() {
	err := tool.Failed(errors.New("order 42 was paid back last week"))
	fmt.Println(tool.Meaning(err))
	fmt.Println(tool.Meaning(tool.NotSent(errors.New("no such host"))))
	fmt.Println(tool.Meaning(errors.New("connection reset")))
	// Output:
	// failed
	// not_sent
	// ambiguous
}

// A set checks arguments before anything is sent, and says to the model what to mend.
func ExampleSet_Validate() {
	type input struct {
		ID int64 `json:"id"`
	}
	getOrder, err := tool.New(tool.Spec{Name: "get_order", Class: agent.ClassRead},
		func(context.Context, tool.Call, input) (map[string]any, error) { return nil, nil })
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := tool.NewSet(getOrder)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(set.Validate("get_order", `{"id":42}`))
	fmt.Println(set.Validate("get_order", `{"ID":"42"}`))
	// Output:
	// <nil>
	// the arguments do not match the tool's parameters: "ID" is not among its parameters, which are "id"; "id" is missing
}

// An HTTP tool is described, not written: arguments are escaped into their places, the rest is the body.
func ExampleNewHTTP() {
	t, err := tool.NewHTTP(tool.HTTPConfig{
		Name:       "refund",
		Method:     "POST",
		URL:        "https://payments.example.com/orders/{order}/refunds",
		Headers:    map[string]string{"Authorization": "Bearer the-secret"},
		HeaderRefs: map[string]string{"Authorization": "env:PAYMENTS_TOKEN"},
		Parameters: json.RawMessage(`{"type":"object","required":["order","amount"],"additionalProperties":false,
			"properties":{"order":{"type":"string"},"amount":{"type":"number"}}}`),
		Class: agent.ClassIdempotent,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(t.Spec().Name, t.Spec().Class, t.Spec().Window)
	// Output: refund idempotent 24h0m0s
}
