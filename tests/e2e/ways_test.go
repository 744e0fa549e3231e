package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// TestADecisionCountsByEveryWayInWhichItCanBeSent: the command with a key, the temporal CLI by hand, the Web UI's
// server as its Send Signal uses it. What policy wants signed does not count by hand.
func TestADecisionCountsByEveryWayInWhichItCanBeSent(t *testing.T) {
	t.Parallel()
	alice, bob := newPerson(t, "alice"), newPerson(t, "bob")
	r := newRig(t, setting{
		model: modeltest.Config{Func: orders},
		policy: `{rules: [{name: large, when: 'double(args.amount) > 10.0', then: ask, approval: {by: [alice]}}, {name: small, then: ask}], ` +
			"duplicates: allow, " + approvers(alice, bob) + "}",
	})
	r.worker("")
	ui := webUI(t)
	temporal, err := devserver.Find(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	large, small := "refund"+refund42, `refund {"order":"42","amount":"5.00"}`
	byHand := func(a agent.Approval, choice agent.Choice, approver string) string {
		b, err := json.Marshal(agent.ApprovalDecision{ID: a.ID, Digest: a.Action, Choice: choice, Approver: approver, Ref: "by-hand"})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	cli := func(session, input string) {
		if _, stderr, exit := r.command(temporal, "workflow", "signal", "--address", r.addr, "--workflow-id", agent.TurnID(r.prefix+session, 1),
			"--name", agent.SignalApproval, "--input", input); exit != 0 {
			t.Errorf("temporal workflow signal: exit %d: %s", exit, stderr)
		}
	}
	want := func(wantExit int, words string, args ...string) {
		t.Helper()
		stdout, stderr, exit := r.holdfast(args...)
		if exit != wantExit || !strings.Contains(stdout+stderr, words) {
			t.Errorf("holdfast %s: exit %d, want %d with %q:\n%s%s", strings.Join(args, " "), exit, wantExit, words, stdout, stderr)
		}
	}
	for _, way := range []struct {
		name  string
		text  string
		send  func(session string, a agent.Approval)
		state agent.State
		by    string // as the ledger names who decided
	}{
		{"command-signed", large, func(session string, a agent.Approval) {
			want(2, "--digest", "approve", a.ID, "--as", "alice", "--key", alice.path) // there is no terminal to ask on
			want(7, "another digest", "approve", a.ID, "--digest", strings.Repeat("0", 64), "--as", "alice", "--key", alice.path)
			want(7, "signature", "approve", a.ID, "--digest", string(a.Action), "--as", "alice")
			want(7, "bob", "approve", a.ID, "--digest", string(a.Action), "--as", "bob", "--key", bob.path)
			want(0, "approved by alice", "approve", a.ID, "--digest", string(a.Action), "--as", "alice", "--key", alice.path)
		}, committed, "alice"},
		{"command-declined", large, func(_ string, a agent.Approval) {
			want(0, "declined by alice", "decline", a.ID, "--reason", "too late", "--as", "alice", "--key", alice.path)
		}, agent.StateDeclined, "alice"},
		{"command-withdrawn", small, func(session string, a agent.Approval) {
			want(0, "withdrawn by somebody (claimed)", "approvals", "cancel", r.prefix+session, "--as", "somebody")
		}, agent.StateCancelled, "somebody (claimed)"},
		{"temporal-cli", small, func(session string, a agent.Approval) {
			cli(session, byHand(a, agent.ChoiceApprove, "carl"))
		}, committed, "carl (claimed)"},
		{"web-ui", small, func(session string, a agent.Approval) {
			ui.signal(t, agent.TurnID(r.prefix+session, 1), agent.SignalApproval, byHand(a, agent.ChoiceApprove, "carla"))
		}, committed, "carla (claimed)"},
		{"web-ui-declined", small, func(session string, a agent.Approval) {
			ui.signal(t, agent.TurnID(r.prefix+session, 1), agent.SignalApproval, byHand(a, agent.ChoiceDecline, "carla"))
		}, agent.StateDeclined, "carla (claimed)"},
		{"by-hand-where-a-signature-is-needed", large, func(session string, a agent.Approval) {
			cli(session, byHand(a, agent.ChoiceApprove, "alice"))
			if why := r.refused(session, 1, "by-hand"); !strings.Contains(why, "sign") {
				t.Errorf("refused because: %s", why)
			}
			d := alice.says(t, r.scope(session), a, agent.ChoiceDecline)
			r.signal(session, 1, agent.SignalApproval, d)
		}, agent.StateDeclined, "alice"},
	} {
		t.Run(way.name, func(t *testing.T) {
			r.start(way.name, way.text)
			_, a := r.ask(way.name, 1, agent.OutcomePending)
			way.send(way.name, a)
			if res := r.ended(way.name, 1); res.Status != agent.StatusDone {
				t.Errorf("%+v", res)
			}
			all := r.ledger(way.name, 1)
			if len(all) != 1 || all[0].State != way.state {
				t.Fatalf("effects %+v", all)
			}
			by := ""
			for _, s := range all[0].Trail {
				if s.By != "" {
					by = s.By
				}
			}
			if by != way.by {
				t.Errorf("decided by %q, want %q", by, way.by)
			}
		})
	}
	if n := len(r.pay.Books().Entries); n != 3 {
		t.Errorf("%d refunds, want one for each approval", n)
	}
}

func (r *rig) scope(session string) agent.Scope {
	r.t.Helper()
	return r.approvals(session, 1, "it answers", func(agent.ApprovalsView) bool { return true }).Scope
}

// A browser is what a person's browser is to the Web UI's server.
type browser struct {
	base string
	csrf *http.Cookie // which the UI's server wants back in a header as well
}

// webUI opens the shared server's Web UI.
func webUI(t *testing.T) *browser {
	t.Helper()
	base := strings.TrimSuffix(parts.server.UI(), "/")
	res, err := http.Get(base)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	for _, c := range res.Cookies() {
		if c.Name == "_csrf" {
			return &browser{base, c}
		}
	}
	t.Fatalf("%s sets no cookie _csrf: %s", base, res.Status)
	return nil
}

// signal does what the Send Signal dialog does.
func (b *browser) signal(t *testing.T, workflow, name, input string) {
	t.Helper()
	encode := base64.StdEncoding.EncodeToString
	body, err := json.Marshal(map[string]any{
		"signalName": name, "workflowExecution": map[string]string{"workflowId": workflow},
		"input": map[string]any{"payloads": []any{map[string]any{
			"metadata": map[string]string{"encoding": encode([]byte("json/plain"))}, "data": encode([]byte(input)),
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := fmt.Sprintf("%s/api/v1/namespaces/default/workflows/%s/signal/%s", b.base, url.PathEscape(workflow), name)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-CSRF-TOKEN", b.csrf.Value)
	req.AddCookie(b.csrf)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if said, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s: %.400s", at, res.Status, said)
	}
}
