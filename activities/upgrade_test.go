package activities

import (
	"crypto/ed25519"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
)

func version(name string) agent.Digest { return agent.DigestOf([]byte(name)) }

// edit changes the world's agent.
func (w *world) edit(change func(*agent.Definition)) agent.Digest {
	w.t.Helper()
	def := w.snap.Agents["clerk"]
	def.Tools = slices.Clone(def.Tools)
	change(&def)
	w.snap.Agents = map[string]agent.Definition{"clerk": def}
	_, digest, err := encoded(def)
	if err != nil {
		w.t.Fatal(err)
	}
	return digest
}

func (w *world) upgrades(u agent.Upgrade) { w.snap.Upgrades = map[string]agent.Upgrade{"clerk": u} }

// opens opens the second turn of a session whose first one had that definition.
func (w *world) opens(old agent.Digest) (agent.OpenResult, error) {
	w.t.Helper()
	return local[agent.OpenResult](w.t, w.Open, agent.OpenInput{
		Scope: w.scope, Turn: 2, Agent: "clerk", Definition: old, Message: agent.Message{Text: "go on", From: "erin"}, Serial: 3, Store: w.Store.ID(),
	})
}

// deployed is a worker of two models and two tools after the definition of its agent, and the digest of what a
// session's last turn had.
func deployed(t *testing.T) (w *world, old agent.Digest) {
	t.Helper()
	look := tool.Spec{Name: "look", Class: agent.ClassRead}
	w = newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil), newFake(t, look, nil))
	w.snap.Models = map[string]Model{"m": {Name: "m", Version: version("m")}, "large": {Name: "large", Version: version("large")}}
	w.edit(func(d *agent.Definition) { d.ModelVersion = version("m") })
	res, err := local[agent.OpenResult](t, w.Open, agent.OpenInput{Scope: w.scope, Turn: 1, Agent: "clerk", Serial: 3})
	if err != nil || res.Policy != w.snap.Policy.Version().Short() || res.Offer != nil {
		t.Fatalf("%+v, %v", res, err)
	}
	return w, res.Definition
}

// changes of a configuration, and how people are told.
var deploys = []struct {
	name   string
	change func(w *world)
	told   []string // nil if the agent is not defined otherwise
}{
	{"nothing", func(*world) {}, nil},
	{"instructions", func(w *world) { w.edit(func(d *agent.Definition) { d.Instructions = "Be vague." }) }, []string{"instructions"}},
	{"another model", func(w *world) {
		w.edit(func(d *agent.Definition) { d.Model, d.ModelVersion = "large", version("large") })
	}, []string{"model m -> large"}},
	{"the model's version", func(w *world) {
		w.snap.Models["kept"], w.snap.Models["m"] = w.snap.Models["m"], Model{Name: "m", Version: version("m2")}
		w.edit(func(d *agent.Definition) { d.ModelVersion = version("m2") })
	}, []string{"model m: another version"}},
	{"a tool's version", func(w *world) {
		w.edit(func(d *agent.Definition) { d.Tools[0].Version = version("pay2") })
	}, []string{"tool pay: another version"}},
	{"a tool removed", func(w *world) { w.edit(func(d *agent.Definition) { d.Tools = d.Tools[1:] }) }, []string{"tool pay: removed"}},
	{"a tool added", func(w *world) {
		w.edit(func(d *agent.Definition) {
			d.Tools = append(d.Tools, agent.ToolRef{Name: "wire", Version: version("wire")})
		})
	}, []string{"tool wire: added"}},
	{"limits", func(w *world) { w.edit(func(d *agent.Definition) { d.Limits.Steps = 3 }) }, []string{"limits"}},
	{"the order of tools", func(w *world) { w.edit(func(d *agent.Definition) { slices.Reverse(d.Tools) }) }, []string{"the order or the form of its parts"}},
	{"everything", func(w *world) {
		w.edit(func(d *agent.Definition) {
			d.Instructions, d.Model, d.ModelVersion, d.Tools[1].Version, d.Limits.Calls = "No.", "large", version("large"), version("look2"), 1
		})
	}, []string{"instructions", "model m -> large", "tool look: another version", "limits"}},
}

func TestTheUpgradeInForceDecidesWhichDefinitionATurnOpensWith(t *testing.T) {
	t.Parallel()
	for _, c := range deploys {
		for _, u := range []agent.Upgrade{"", agent.UpgradeFollow, agent.UpgradePin, agent.UpgradeAsk} {
			t.Run(c.name+"/"+string(u), func(t *testing.T) {
				t.Parallel()
				w, old := deployed(t)
				limits := w.snap.Agents["clerk"].Limits
				c.change(w)
				w.upgrades(u)
				fresh := w.edit(func(*agent.Definition) {})
				if (fresh == old) != (c.told == nil) {
					t.Fatalf("the change makes %s of %s", fresh, old)
				}
				res, err := w.opens(old)
				if err != nil {
					t.Fatal(err)
				}
				want, asks := fresh, false
				if c.told != nil && (u == agent.UpgradePin || u == agent.UpgradeAsk) {
					want, asks = old, u == agent.UpgradeAsk
				} else {
					limits = w.snap.Agents["clerk"].Limits
				}
				if res.Definition != want || (res.Offer != nil) != asks || res.Limits != limits {
					t.Errorf("opened with %+v; want %s and an offer: %v", res, want, asks)
				}
				if asks && res.Offer.To != fresh {
					t.Errorf("offered %s, not %s", res.Offer.To, fresh)
				}
				for _, d := range []agent.Digest{res.Definition, old} {
					if _, err := w.space().Body(t.Context(), agent.Body{Digest: d}); err != nil {
						t.Error(err)
					}
				}
				// A run of number 1 or 2 does not say what its session had.
				if res, err := w.opens(""); err != nil || res.Definition != fresh || res.Offer != nil {
					t.Errorf("without a definition it opened with %+v, %v", res, err)
				}
			})
		}
	}
}

func TestAnAgentThatIsGoneOpensNoTurnWhateverItsUpgrade(t *testing.T) {
	t.Parallel()
	for _, u := range []agent.Upgrade{agent.UpgradeFollow, agent.UpgradePin, agent.UpgradeAsk} {
		w, old := deployed(t)
		w.upgrades(u)
		w.snap.Agents = map[string]agent.Definition{"other": {Name: "other", Model: "m"}}
		_, err := w.opens(old)
		if app := wantApp(t, err, agent.ErrUnknownAgent, true); !strings.Contains(app.Message(), "the agents are other") {
			t.Errorf("%s: %v", u, err)
		}
	}
}

func TestWhereNobodyMayApproveTheTurnGoesOnWithTheOldDefinitionWithoutAnOffer(t *testing.T) {
	t.Parallel()
	no := false
	for name, p := range map[string]*policy.Policy{
		"no policy": nil,
		// erin's name is only claimed, and whoever sent the message may not approve.
		"an unknown sender": newPolicy(t, policy.Config{SelfApproval: &no, Approvers: map[string]policy.Approver{"boss": {Keys: []policy.Key{{Key: sshKey(t).PublicKey()}}}}}),
	} {
		w, old := deployed(t)
		w.upgrades(agent.UpgradeAsk)
		w.edit(func(d *agent.Definition) { d.Instructions = "Be vague." })
		w.snap.Policy = p
		if res, err := w.opens(old); err != nil || res.Definition != old || res.Offer != nil {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}

func sshKey(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// offered is a world that has made an offer, and the input that takes it with alice's approval.
func offered(t *testing.T) (w *world, old agent.Digest, in agent.OpenInput) {
	t.Helper()
	w, old = deployed(t)
	w.upgrades(agent.UpgradeAsk)
	w.edit(func(d *agent.Definition) { d.Instructions = "Be vague." })
	res, err := w.opens(old)
	if err != nil || res.Offer == nil {
		t.Fatalf("%+v, %v", res, err)
	}
	c := res.Offer.Call
	id := agent.ApprovalID(agent.ActionKey(w.scope, agent.Place{Turn: 2, Call: 1}, c.Action), 1)
	return w, old, agent.OpenInput{
		Scope: w.scope, Turn: 2, Agent: "clerk", Definition: old, Take: res.Offer.To, Serial: 3, Store: w.Store.ID(),
		Senders: []agent.Actor{{Name: "erin"}},
		Grant: &agent.Grant{
			ID: id, Action: c.Action, Requested: noon, Expires: noon.Add(time.Hour), Terms: *c.Terms,
			Decisions: []agent.Decided{{
				ApprovalDecision: agent.ApprovalDecision{ID: id, Digest: c.Action, Choice: agent.ChoiceApprove, Approver: "alice"},
				At:               noon.Add(time.Minute), Claimed: true,
			}},
		},
	}
}

func TestAnApprovedDefinitionIsTakenOnlyIfTheApprovalCountsForIt(t *testing.T) {
	t.Parallel()
	no := false
	bosses := policy.Config{AcceptUnsigned: true, Approvers: map[string]policy.Approver{"boss": {}}, Approval: policy.Asking{By: []string{"boss"}}}
	for name, c := range map[string]struct {
		spoil func(w *world, in *agent.OpenInput)
		takes bool
	}{
		"as it was approved":                       {func(*world, *agent.OpenInput) {}, true},
		"the rules deny every tool by now":         {func(w *world, _ *agent.OpenInput) { w.snap.Policy = saying(w.t, agent.DecisionDeny) }, true},
		"no grant":                                 {func(_ *world, in *agent.OpenInput) { in.Grant = nil }, false},
		"no decision":                              {func(_ *world, in *agent.OpenInput) { in.Grant.Decisions = nil }, false},
		"a decline":                                {func(_ *world, in *agent.OpenInput) { in.Grant.Decisions[0].Choice = agent.ChoiceDecline }, false},
		"a decision for another action":            {func(_ *world, in *agent.OpenInput) { in.Grant.Decisions[0].Digest = version("x") }, false},
		"a decision of another request":            {func(_ *world, in *agent.OpenInput) { in.Grant.Decisions[0].ID += "1" }, false},
		"a late decision":                          {func(_ *world, in *agent.OpenInput) { in.Grant.Decisions[0].At = noon.Add(2 * time.Hour) }, false},
		"a decision that edits":                    {func(_ *world, in *agent.OpenInput) { in.Grant.Decisions[0].Args = "{}" }, false},
		"a grant of an edit":                       {func(_ *world, in *agent.OpenInput) { in.Grant.Proposed = in.Grant.Action }, false},
		"a grant of another action":                {func(_ *world, in *agent.OpenInput) { in.Grant.Action = version("x") }, false},
		"a grant of another turn":                  {func(_ *world, in *agent.OpenInput) { in.Turn = 3 }, false},
		"a grant of another session":               {func(_ *world, in *agent.OpenInput) { in.Grant.ID = strings.Replace(in.Grant.ID, "s1~", "s2~", 1) }, false},
		"another definition than was approved":     {func(_ *world, in *agent.OpenInput) { in.Take = version("x") }, false},
		"the approver may not any more":            {func(w *world, _ *agent.OpenInput) { w.governed(bosses) }, false},
		"nobody may any more":                      {func(w *world, _ *agent.OpenInput) { w.snap.Policy = nil }, false},
		"two are needed by now":                    {func(w *world, _ *agent.OpenInput) { w.governed(two()) }, false},
		"whoever sent it may not approve any more": {func(w *world, in *agent.OpenInput) { w.governed(others(&no)); in.Senders[0].Name = "alice" }, false},
		"somebody else sent it":                    {func(w *world, _ *agent.OpenInput) { w.governed(others(&no)) }, true},
		"the agent is pinned by now":               {func(w *world, _ *agent.OpenInput) { w.upgrades(agent.UpgradePin) }, false},
		"what was approved is gone":                {func(w *world, in *agent.OpenInput) { approvedOf(w, in, nil) }, false},
		"what was approved is damaged":             {func(w *world, in *agent.OpenInput) { approvedOf(w, in, []byte("x")) }, false},
		"the configuration has moved on":           {func(w *world, _ *agent.OpenInput) { w.edit(func(d *agent.Definition) { d.Instructions = "Be quiet." }) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, old, in := offered(t)
			want := old
			if c.takes {
				want = in.Take
			}
			c.spoil(w, &in)
			res, err := local[agent.OpenResult](t, w.Open, in)
			if err != nil || res.Definition != want || res.Offer != nil {
				t.Errorf("opened with %+v, %v; want %s", res, err, want)
			}
		})
	}
}

func TestAnUpgradeThatIsNotAskedAboutAnyMoreNeedsNoApproval(t *testing.T) {
	t.Parallel()
	w, _, in := offered(t)
	w.upgrades(agent.UpgradeFollow)
	quiet := w.edit(func(d *agent.Definition) { d.Instructions = "Be quiet." })
	if res, err := local[agent.OpenResult](t, w.Open, in); err != nil || res.Definition != quiet || res.Offer != nil {
		t.Errorf("%+v, %v: the configuration's is %s", res, err, quiet)
	}
}

func two() policy.Config {
	return policy.Config{AcceptUnsigned: true, Approvers: map[string]policy.Approver{"alice": {}, "boss": {}}, Approval: policy.Asking{Quorum: 2}}
}

func others(no *bool) policy.Config {
	return policy.Config{AcceptUnsigned: true, SelfApproval: no, Approvers: map[string]policy.Approver{"alice": {}, "erin": {}}}
}

// approvedOf makes another definition than the approved one the configuration's, and the approved one's bytes in the
// store these; nil takes them away. Nothing is ever taken away from a store, so it is another one.
func approvedOf(w *world, in *agent.OpenInput, b []byte) {
	w.t.Helper()
	fresh := newWorld(w.t, "mem://")
	old, err := w.space().Body(w.t.Context(), agent.Body{Digest: in.Definition})
	if err == nil {
		_, err = fresh.space().PutBody(w.t.Context(), old, "")
	}
	if err == nil && b != nil {
		_, _, err = fresh.space().Create(w.t.Context(), store.KindBodies, string(in.Take), b)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.edit(func(d *agent.Definition) { d.Instructions = "Be quiet." })
	w.Store, w.Log, in.Store = fresh.Store, fresh.Log, fresh.Store.ID()
}

// Whatever comes in, and whatever the configuration says by then: a turn works with the definition of the session's
// last one, or with another by the file in force that lets it follow, or with exactly what people approved.
func TestADefinitionNeverChangesWithoutAuthority(t *testing.T) {
	t.Parallel()
	const rounds = 400
	rng := rand.New(rand.NewPCG(4, 2026))
	w, old, good := offered(t)
	fresh := good.Take
	other := w.edit(func(d *agent.Definition) { d.Instructions = "Be quiet." })
	if _, err := w.opens(old); err != nil { // it is offered, and so stored
		t.Fatal(err)
	}
	pick := func(list ...agent.Digest) agent.Digest { return list[rng.IntN(len(list))] }
	taken := 0
	for i := range rounds {
		in := good
		g := *good.Grant
		g.Decisions = slices.Clone(g.Decisions)
		in.Grant = &g
		u := []agent.Upgrade{agent.UpgradeAsk, agent.UpgradeAsk, agent.UpgradeAsk, agent.UpgradePin, "odd"}[rng.IntN(5)]
		w.upgrades(u)
		in.Definition, in.Take = pick(old, old, fresh), pick(fresh, fresh, other, old, version("none"), "")
		now := []string{"Be exact.", "Be vague.", "Be quiet."}[rng.IntN(3)]
		config := w.edit(func(d *agent.Definition) { d.Instructions = now })
		spoilt := false
		if rng.IntN(2) == 0 {
			spoilt = true
			d := &g.Decisions[0]
			[]func(){
				func() { in.Grant = nil },
				func() { g.Action = version("x") },
				func() { g.ID = strings.Replace(g.ID, "turn-2", "turn-1", 1) },
				func() { d.Choice = agent.ChoiceCancel },
				func() { d.Approver = "" },
				func() { d.At = time.Time{} },
				func() { d.Args = `{"agent":"clerk"}` },
				func() { g.Decisions = nil },
				func() { in.Turn = 1 },
			}[rng.IntN(9)]()
		}
		res, err := local[agent.OpenResult](t, w.Open, in)
		if err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		granted := u == agent.UpgradeAsk && !spoilt && in.Definition == old && in.Take == fresh
		switch {
		case res.Definition == in.Definition && (!granted || config == old):
		case granted && res.Definition == in.Take:
			taken++
		default:
			t.Errorf("round %d: %s became %s by %q, take %s, granted: %v", i, in.Definition, res.Definition, u, in.Take, granted)
		}
		if res.Offer != nil && (u != agent.UpgradeAsk || in.Take != "" || res.Offer.To != config) {
			t.Errorf("round %d: offer %+v", i, res.Offer)
		}
	}
	if taken < rounds/40 {
		t.Errorf("taken %d times of %d: the property says nothing", taken, rounds)
	}
}
