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

// A bank is a destination that can be asked.
type bank struct{ made map[string]receipt }

type receipt struct {
	ID string `json:"id"`
}

type input struct {
	Order string `json:"order"`
}

type state struct {
	Refunded bool `json:"refunded"`
}

func (b bank) refund(_ context.Context, c tool.Call, _ input) (receipt, error) {
	b.made[c.Key] = receipt{ID: "re_1"}
	return receipt{}, errors.New("connection reset") // the answer is lost
}

func (b bank) lookUp(_ context.Context, key string) (r receipt, found bool, err error) {
	r, found = b.made[key]
	return r, found, nil
}

func (b bank) state(context.Context, string) (state, error) { return state{len(b.made) > 0}, nil }
func (b bank) stop(context.Context, string) error           { return errors.New("too late") }

// What a call did whose answer was lost is learnt from the destination.
func ExampleWithReconcile() {
	b := bank{made: map[string]receipt{}}
	refund, err := tool.New(tool.Spec{
		Name: "refund", Description: "Pays an order back.", Class: agent.ClassReconcilable,
		Compensate: &tool.Compensation{Tool: "void_refund", Args: map[string]string{"refund": "result.id"}},
	}, b.refund,
		tool.WithReconcile(func(ctx context.Context, c tool.Call, _ input) (tool.Finding, receipt, error) {
			r, found, err := b.lookUp(ctx, c.Key)
			if err != nil || found {
				return tool.Found, r, err // with an error it counts as unknown
			}
			return tool.Absent, receipt{}, nil
		}),
		tool.WithObserve(func(ctx context.Context, _ tool.Call, in input) (state, error) { return b.state(ctx, in.Order) }),
		tool.WithCancel(func(ctx context.Context, c tool.Call) error { return b.stop(ctx, c.Key) }))
	if err != nil {
		fmt.Println(err)
		return
	}
	call := tool.Call{Key: "k1", Args: `{"order":"42"}`}
	_, err = refund.Do(context.Background(), call)
	fmt.Println(tool.Meaning(err))
	r, _ := tool.AsReconciler(refund)
	finding, result, err := r.Reconcile(context.Background(), call)
	fmt.Println(finding, string(result.Data), err)
	// Output:
	// ambiguous
	// found {"id":"re_1"} <nil>
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
