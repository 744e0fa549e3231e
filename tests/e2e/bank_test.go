package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tool"
)

// bankBooks names the books of the MCP server that this test binary is when it is set.
const bankBooks = "HOLDFAST_E2E_BANK"

// A transfer is a line of the bank's books: one request that it has taken, and whether it made an entry.
type transfer struct {
	Tool, Key, Order string
	Made             bool
}

type transferIn struct {
	Order  string `json:"order"`
	Amount string `json:"amount"`
}

type findIn struct {
	Key string `json:"key"`
}

type findOut struct {
	Transfers []transfer `json:"transfers"`
}

// runBank serves MCP over stdio, by the SDK that most servers use. keyed honours the key that comes with a call,
// asked and blind do not; find says what was made under a key, by asked only.
func runBank(path string) {
	s := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	for _, name := range []string{"keyed", "asked", "blind"} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: "Refunds an order."},
			func(_ context.Context, r *mcp.CallToolRequest, in transferIn) (*mcp.CallToolResult, any, error) {
				x := transfer{Tool: name, Order: in.Order, Made: true}
				x.Key, _ = r.Params.Meta[tool.MCPKey].(string)
				all, err := readBank(path)
				for _, have := range all {
					if name == "keyed" && have.Tool == name && have.Key == x.Key {
						x.Made = false
					}
				}
				if err == nil {
					err = appendBank(path, x)
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "refunded " + in.Order}}}, nil, err
			})
	}
	mcp.AddTool(s, &mcp.Tool{Name: "find", Description: "Says what was made under a key."},
		func(_ context.Context, _ *mcp.CallToolRequest, in findIn) (*mcp.CallToolResult, findOut, error) {
			out := findOut{Transfers: []transfer{}}
			all, err := readBank(path)
			for _, have := range all {
				if have.Tool == "asked" && have.Key == in.Key {
					out.Transfers = append(out.Transfers, have)
				}
			}
			return nil, out, err
		})
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func readBank(path string) (all []transfer, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(b)) {
		var x transfer
		err = errors.Join(err, json.Unmarshal([]byte(line), &x))
		all = append(all, x)
	}
	return all, err
}

// appendBank writes one line in one write, which a death of this process cannot cut.
func appendBank(path string, x transfer) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// banked is landed, for the bank.
func (r *rig) banked(books, name string) landing {
	r.t.Helper()
	res := r.ended(name, 1)
	if res.Status != agent.StatusDone {
		r.t.Errorf("%s: result %+v", name, res)
	}
	effects := r.ledger(name, 1)
	if len(effects) != 1 {
		r.t.Fatalf("%s: effects %+v", name, effects)
	}
	e := effects[0]
	out := landing{State: e.State}
	if e.Evidence != "the destination answered" {
		out.Evidence = e.Evidence
	}
	all, err := readBank(books)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, x := range all {
		if x.Tool != name {
			continue
		}
		out.Requests++
		if x.Made {
			out.Entries++
		}
		if x.Key != e.Key {
			r.t.Errorf("%s: it was told the key %q, which is %q", name, x.Key, e.Key)
		}
	}
	return out
}

// TestAnMCPServersToolsAreAppliedAsTheyAreDeclaredWhereverTheWorkerDies is the same for a server over stdio, which
// is asked by another of its tools. It dies with its worker and is started again by the next.
func TestAnMCPServersToolsAreAppliedAsTheyAreDeclaredWhereverTheWorkerDies(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	once := landing{Entries: 1, Requests: 1, State: committed}
	names := []string{"keyed", "asked", "blind"}
	for _, test := range []struct {
		point               string
		keyed, asked, blind landing
	}{
		{failpoint.ToolBeforeAdmission, once, once, once},
		{failpoint.ToolBeforeDispatch, once, once, once},
		{failpoint.ToolAfterDispatch, once, once, landing{State: uncertain}},
		{
			failpoint.ToolAfterCommit,
			landing{Entries: 1, Requests: 2, State: committed},
			landing{Entries: 1, Requests: 1, State: committed, Evidence: found},
			landing{Entries: 1, Requests: 1, State: uncertain},
		},
		{failpoint.ToolAfterAdoption, once, once, once},
	} {
		t.Run(test.point, func(t *testing.T) {
			t.Parallel()
			books := filepath.Join(t.TempDir(), "bank")
			r := newRig(t, setting{
				model: modeltest.Config{Func: orders}, tools: "[bank.keyed, bank.asked, bank.blind]",
				toolsYML: fmt.Sprintf(`  bank:
    mcp: {command: [%q], env: {%s: %q}}
    tools:
      keyed: {effect: idempotent, timeout: 1s}
      asked:
        effect: reconcilable
        timeout: 1s
        reconcile: {tool: find, args: {key: key}, found: "!error && size(body.transfers) > 0", absent: "!error && size(body.transfers) == 0"}
      blind: {timeout: 1s}
`, exe, bankBooks, books),
			})
			dying := r.worker(test.point + "=file:" + filepath.Join(r.dir, "never"))
			for _, name := range names {
				r.start(name, "bank__"+name+refund42)
			}
			r.passed(test.point, len(names))
			dying.kill()
			r.worker("")
			for i, want := range []landing{test.keyed, test.asked, test.blind} {
				if diff := cmp.Diff(want, r.banked(books, names[i])); diff != "" {
					t.Errorf("%s (-want +got):\n%s", names[i], diff)
				}
			}
		})
	}
}
