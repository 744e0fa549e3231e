package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments/bank"
)

// bankBooks names the books of the MCP server that this test binary is when it is set.
const bankBooks = "HOLDFAST_E2E_BANK"

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
	all, err := bank.Read(books)
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
	names := []string{bank.Keyed, bank.Asked, bank.Blind}
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
