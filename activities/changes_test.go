package activities

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/policy"
)

func TestAnOfferIsAnActionThatWhoeverSeesItCanComputeTheDigestOf(t *testing.T) {
	t.Parallel()
	w, old := deployed(t)
	w.upgrades(agent.UpgradeAsk)
	w.governed(policy.Config{AcceptUnsigned: true, Approvers: map[string]policy.Approver{"boss": {}}, Approval: policy.Asking{By: []string{"boss"}, Expires: time.Hour}})
	fresh := w.edit(func(d *agent.Definition) {
		d.Instructions, d.Tools[0].Version = "The key is "+hush+". <b>"+strings.Repeat("é", maxInstructions), version("pay2")
	})
	res, err := w.opens(old)
	if err != nil || res.Offer == nil {
		t.Fatalf("%+v, %v", res, err)
	}
	c := res.Offer.Call
	if canonical, err := approval.Canonical([]byte(c.Args)); err != nil || canonical != c.Args {
		t.Errorf("arguments %q: %v", c.Args, err)
	}
	var args agent.UpgradeArgs
	if err := json.Unmarshal([]byte(c.Args), &args); err != nil {
		t.Fatal(err)
	}
	if len(args.Instructions) > maxInstructions || !strings.HasPrefix(args.Instructions, "The key is [secret]. <b>éé") {
		t.Errorf("instructions of %d bytes: %.60q", len(args.Instructions), args.Instructions)
	}
	args.Instructions = ""
	want := agent.UpgradeArgs{Agent: "clerk", From: old, To: fresh, Changes: []string{"instructions", "tool pay: another version"}}
	if diff := cmp.Diff(want, args); diff != "" {
		t.Error(diff)
	}
	if c.Tool != agent.ToolUpgrade || c.Class != agent.ClassRead || c.Trouble != "" || c.Summary != "agent clerk: instructions, tool pay" {
		t.Errorf("call %+v", c)
	}
	if want := (agent.Verdict{Decision: agent.DecisionAsk, Rule: policy.RuleUpgrade, Policy: w.snap.Policy.Version().Short()}); c.Verdict != want {
		t.Errorf("verdict %+v", c.Verdict)
	}
	terms := &agent.Terms{Resource: "clerk", Version: fresh, By: []string{"boss"}, Quorum: 1, Expires: agent.Duration(time.Hour)}
	if diff := cmp.Diff(terms, c.Terms); diff != "" {
		t.Error(diff)
	}
	shown := approval.Action{Tool: c.Tool, Version: c.Terms.Version, Args: c.Args, Resource: c.Terms.Resource, Place: agent.Place{Turn: 2, Call: 1}}
	if shown.Digest() != c.Action {
		t.Errorf("the digest is %s, not that of what is shown, %s", c.Action, shown.Digest())
	}
	if k, ok := agent.ParseKey(agent.ActionKey(w.scope, shown.Place, c.Action)); !ok || k.Place != shown.Place {
		t.Errorf("its key reads as %+v", k)
	}
	if !json.Valid([]byte(c.Args)) || strings.Contains(fmt.Sprint(res), hush) {
		t.Error("the secret is in what history gets")
	}
}

func TestAnOfferIsBoundedWhateverTheOldDefinitionHolds(t *testing.T) {
	t.Parallel()
	w, _ := deployed(t)
	w.upgrades(agent.UpgradeAsk)
	hostile := agent.Definition{Name: "clerk", Model: strings.Repeat("m\n", 5000)}
	for i := range 3000 {
		hostile.Tools = append(hostile.Tools, agent.ToolRef{Name: fmt.Sprintf("tool-%d\x1b[31m%s", i, strings.Repeat("x", 300))})
	}
	old, err := w.keepDefinition(t.Context(), w.scope, hostile)
	if err != nil {
		t.Fatal(err)
	}
	res, err := local[agent.OpenResult](t, w.Open, agent.OpenInput{Scope: w.scope, Turn: 2, Agent: "clerk", Definition: old, Serial: 3})
	if app := wantApp(t, err, agent.ErrStaleConfig, false); len(app.Message()) > maxError { // no such model here
		t.Errorf("%+v: %v", res, err)
	}
	hostile.Model = "m"
	if old, err = w.keepDefinition(t.Context(), w.scope, hostile); err != nil {
		t.Fatal(err)
	}
	if res, err = w.opens(old); err != nil || res.Offer == nil {
		t.Fatalf("%+v, %v", res, err)
	}
	if c := res.Offer.Call; len(c.Args) > 24<<10 || len(c.Summary) > maxUpgrade || strings.ContainsAny(c.Summary, "\x1b\n") {
		t.Errorf("arguments of %d bytes, summary %q", len(c.Args), c.Summary)
	}
}
