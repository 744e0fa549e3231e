// Command variant is a program of a library's user, in two versions that the tests build: the second declares its tool
// otherwise. The workflows of the second are changed as well, by an overlay.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/starter"
	"github.com/holdfast-run/holdfast/tool"
)

// version is set by the linker: "1" or "2".
var version string

type refund struct {
	Order  string `json:"order"`
	Amount string `json:"amount"`
}

// refundWithReason is what the second version wants.
type refundWithReason struct {
	Order  string `json:"order"`
	Amount string `json:"amount"`
	Reason string `json:"reason" jsonschema:"why the money goes back"`
}

// pay asks the payments service for a refund. Its address comes from the environment: the tool is the program's own.
func pay(ctx context.Context, c tool.Call, r refund) (string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return "", tool.NotSent(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, os.Getenv("PAYMENTS_URL")+"/refunds", bytes.NewReader(b))
	if err != nil {
		return "", tool.NotSent(err)
	}
	req.Header.Set("Idempotency-Key", strconv.Quote(c.Key)) // a structured field string
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", tool.Ambiguous(err)
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		return "", tool.Failed(fmt.Errorf("the payments service says %s", res.Status))
	}
	return "refunded", nil
}

func refunds() (tool.Tool, error) {
	spec := tool.Spec{Name: "pay_back", Description: "Refunds an order.", Class: agent.ClassOnce}
	if version == "1" {
		return tool.New(spec, pay)
	}
	return tool.New(spec, func(ctx context.Context, c tool.Call, r refundWithReason) (string, error) {
		return pay(ctx, c, refund{Order: r.Order, Amount: r.Amount})
	})
}

func main() {
	t, err := refunds()
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(starter.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, t))
}
