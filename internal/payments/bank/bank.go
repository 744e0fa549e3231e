// Package bank is a bank behind an MCP server over stdio: what package payments is over HTTP, the outside world of
// tests, which keeps books of its own and has no notion of what a worker believes.
//
// Its tools keyed, asked and blind refund an order, {"order": "42", "amount": "19.90"}. keyed honours the idempotency
// key that comes with a call (tool.MCPKey in its _meta), asked and blind note it only. find says what asked has made
// under a key, {"key": "..."}. As with package payments, nothing stops an order from being refunded twice under two
// keys: a caller that loses its key must show up in the books.
//
// Each worker starts a bank of its own, and one that was frozen has a bank beside its successor's. So the books are the
// only thing that decides: a file to which one write appends one request, in whose order the first under a key is the
// one that keyed has made.
package bank

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-run/holdfast/tool"
)

// The names of the tools that refund.
const (
	Keyed = "keyed"
	Asked = "asked"
	Blind = "blind"
)

// An order is what the refunding tools are called with.
type order struct {
	Order  string `json:"order"`
	Amount string `json:"amount"`
}

// Main serves MCP on standard input and output until the client closes them. The books are the file at path, which it
// makes.
func Main(path string) error {
	if path == "" {
		return errors.New("bank: no path for the books")
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	for _, name := range []string{Keyed, Asked, Blind} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "Refunds an order."},
			func(ctx context.Context, r *mcp.CallToolRequest, in order) (*mcp.CallToolResult, any, error) {
				key, _ := r.Params.Meta[tool.MCPKey].(string)
				err := refund(ctx, path, Transfer{Tool: name, Key: key, Order: in.Order, Amount: in.Amount})
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "refunded " + in.Order}}}, nil, err
			})
	}
	mcp.AddTool(s, &mcp.Tool{Name: "find", Description: "Says what was made under a key."},
		func(_ context.Context, _ *mcp.CallToolRequest, in question) (*mcp.CallToolResult, finding, error) {
			out, err := find(path, in.Key)
			return nil, out, err
		})
	return s.Run(context.Background(), &mcp.StdioTransport{})
}

// refund enters a transfer, unless an earlier call of its key has made it, with what goes wrong with this call.
func refund(ctx context.Context, path string, t Transfer) error {
	if t.Tool == Keyed && t.Key == "" {
		return fmt.Errorf("no idempotency key: send one as %q in _meta", tool.MCPKey)
	}
	fault, err := next(path)
	if err == nil {
		err = before(fault)
	}
	if err == nil {
		err = enter(path, t)
	}
	if err == nil {
		after(ctx, fault)
	}
	return err
}

// enter appends a transfer to the books. A key that was used for something else is refused.
func enter(path string, t Transfer) error {
	all, err := Read(path)
	if err != nil {
		return err
	}
	for _, have := range all {
		if t.Tool == Keyed && have.Tool == Keyed && have.Key == t.Key && (have.Order != t.Order || have.Amount != t.Amount) {
			return fmt.Errorf("the key %q was used for another refund: use a new one", t.Key)
		}
	}
	return write(path, t)
}

type question struct {
	Key string `json:"key"`
}

type finding struct {
	Transfers []Transfer `json:"transfers"`
}

func find(path, key string) (finding, error) {
	out := finding{Transfers: []Transfer{}}
	all, err := Read(path)
	for _, have := range all {
		if have.Tool == Asked && have.Key == key {
			out.Transfers = append(out.Transfers, have)
		}
	}
	return out, err
}
