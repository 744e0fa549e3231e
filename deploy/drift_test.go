package deploy

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/worker"
)

func digest(s string) agent.Digest { return agent.DigestOf([]byte(s)) }

// The definition that the tests' sessions were made with, and what the build has now: other instructions and
// another version of pay; mail is as it was.
func before() agent.Definition {
	return agent.Definition{
		Name: "clerk", Instructions: "Help.", Model: "main", ModelVersion: digest("main 1"),
		Tools: []agent.ToolRef{{Name: "pay", Version: digest("pay 1")}, {Name: "mail", Version: digest("mail 1")}},
	}
}

func now(u agent.Upgrade, change ...func(*worker.Inventory)) *worker.Inventory {
	def := before()
	def.Instructions, def.Tools = "Help well.", slices.Clone(def.Tools)
	def.Tools[0].Version = digest("pay 2")
	inv := &worker.Inventory{
		Build: "b2", Serial: 2, Policy: digest("policy 2"),
		Agents: map[string]worker.InventoryAgent{"clerk": {Definition: def, Digest: digest("clerk 2"), Upgrade: u}},
		Tools:  map[string]agent.Digest{"pay": digest("pay 2"), "mail": digest("mail 1")},
		Models: map[string]agent.Digest{"main": digest("main 1")},
	}
	for _, f := range change {
		f(inv)
	}
	return inv
}

func withOldPay(i *worker.Inventory)   { i.Tools["pay"] = digest("pay 1") }
func withoutPay(i *worker.Inventory)   { delete(i.Tools, "pay") }
func withoutModel(i *worker.Inventory) { i.Models = nil }
func withoutAgent(i *worker.Inventory) {
	delete(i.Agents, "clerk")
}

func session(change ...func(*made)) made {
	m := made{
		workflow: "s1", run: "r1", typ: agent.WorkflowSession, agent: "clerk", change: 3, holds: true, turns: 1, store: "st", serial: 1,
		by: agent.Identity{Definition: digest("clerk 1"), Policy: digest("policy 2").Short(), Build: "b2"},
	}
	for _, f := range change {
		f(&m)
	}
	return m
}

// early makes a session one of before number 3, or of its first run with it.
func early(m *made) { m.change, m.holds = 2, false }

func turn(change ...func(*made)) made {
	m := session(change...)
	m.workflow, m.typ, m.turns = "s1:turn-2", agent.WorkflowTurn, 0
	return m
}

func TestWhatBecomesOfARunFollowsFromTheUpgradeInForce(t *testing.T) {
	t.Parallel()
	have := func() found { d := before(); return found{def: &d} }
	absent := found{why: "the store does not have it"}
	pays := func(m *made) { m.requests = []request{{"pay", digest("pay 1")}} }
	mails := func(m *made) { m.requests = []request{{"mail", digest("mail 1")}} }
	asks := func(m *made) { m.requests = []request{{agent.ToolUpgrade, ""}} }
	for name, c := range map[string]struct {
		m     made
		inv   *worker.Inventory
		old   found
		fate  Fate     // of the definition, empty: it does not drift
		fails []string // kinds of errors
		notes []string
	}{
		"follow takes the new one":                   {m: session(), inv: now("follow"), old: have(), fate: FateTakes},
		"follow needs the old one for nothing":       {m: session(), inv: now("follow"), old: absent, fate: FateTakes},
		"pin keeps the old one":                      {m: session(), inv: now("pin", withOldPay), old: have(), fate: FateKeeps},
		"pin with a tool declared otherwise":         {m: session(), inv: now("pin"), old: have(), fate: FateKeeps, fails: []string{TroubleTool}},
		"pin with a tool that is gone":               {m: session(), inv: now("pin", withoutPay), old: have(), fate: FateKeeps, fails: []string{TroubleTool}},
		"pin without the old one":                    {m: session(), inv: now("pin"), old: absent, fate: FateKeeps, fails: []string{TroubleDefinition}},
		"pin where no store was looked into":         {m: session(), inv: now("pin"), fate: FateKeeps},
		"ask asks":                                   {m: session(), inv: now("ask"), old: have(), fate: FateAsks},
		"ask with a tool that is gone":               {m: session(), inv: now("ask", withoutPay), old: have(), fate: FateAsks, notes: []string{TroubleTool}},
		"ask without the old one":                    {m: session(), inv: now("ask"), old: absent, fate: FateAsks, fails: []string{TroubleDefinition}},
		"number 2 does not know and follows":         {m: session(early), inv: now("pin"), old: have(), fate: FateTakes},
		"number 2 of which nothing says what it was": {m: session(early, func(m *made) { m.by = agent.Identity{} }), inv: now("pin"), fate: FateTakes},
		"a session before its first turn's end":      {m: session(func(m *made) { m.by, m.turns = agent.Identity{}, 0 }), inv: now("pin")},
		"number 2 before its first turn's end":       {m: session(early, func(m *made) { m.by, m.turns = agent.Identity{}, 0 }), inv: now("pin")},
		"the same definition":                        {m: session(func(m *made) { m.by.Definition = digest("clerk 2") }), inv: now("pin")},
		"pin without the model":                      {m: session(), inv: now("pin", withOldPay, withoutModel), old: have(), fate: FateKeeps, fails: []string{TroubleModel}},
		"ask without the model":                      {m: session(), inv: now("ask", withoutModel), old: have(), fate: FateAsks, fails: []string{TroubleModel}},
		"follow without the old model":               {m: session(), inv: now("follow", withoutModel), old: have(), fate: FateTakes},
		"an agent that is gone":                      {m: session(), inv: now("follow", withoutAgent), fails: []string{TroubleAgent}},
		"an agent that is gone, of a turn":           {m: turn(pays), inv: now("pin", withoutAgent), fails: []string{TroubleAgent}},
		"another store":                              {m: session(func(m *made) { m.store = "other" }), inv: now("pin"), fate: FateKeeps, fails: []string{TroubleStore}},
		"a serial that is lower":                     {m: session(func(m *made) { m.serial = 3 }), inv: now("follow"), fate: FateTakes, fails: []string{TroubleSerial}},
		"a turn ends as it began":                    {m: turn(), inv: now("follow"), old: have(), fate: FateEnds},
		"a turn without its definition":              {m: turn(), inv: now("follow"), old: absent, fate: FateEnds, fails: []string{TroubleDefinition}},
		"a turn of number 2 ends as it began":        {m: turn(early), inv: now("follow"), old: have(), fate: FateEnds},
		"a turn that is not opened yet":              {m: turn(func(m *made) { m.by = agent.Identity{} }), inv: now("pin")},
		"pin: a request for a tool that is not so any more": {
			m: turn(pays), inv: now("pin"), old: have(), fate: FateEnds, fails: []string{TroubleTool, TroubleRequest},
		},
		"follow: a request for a tool that is not so any more": {m: turn(pays), inv: now("follow"), old: have(), fate: FateEnds, notes: []string{TroubleRequest}},
		"ask: a request for a tool that is gone": {
			m: turn(pays), inv: now("ask", withoutPay), old: have(), fate: FateEnds, notes: []string{TroubleTool, TroubleRequest},
		},
		"a request for a tool that is as it was": {m: turn(mails), inv: now("pin", withOldPay), old: have(), fate: FateEnds},
		"a request for an upgrade is no tool's":  {m: turn(asks), inv: now("pin", withOldPay), old: have(), fate: FateEnds},
		"an uncertain effect of a tool that is gone": {
			m: session(func(m *made) { m.open = []string{"pay", "mail"} }), inv: now("follow", withoutPay), old: have(), fate: FateTakes, notes: []string{TroubleEffect},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := yardstick{now: c.inv, store: "st"}.compare(c.m, c.old)
			var fate Fate
			for _, d := range got.Drifts {
				if d.Kind == DriftDefinition {
					fate = d.Then
				}
			}
			if fate != c.fate {
				t.Errorf("fate %q, want %q", fate, c.fate)
			}
			if d := cmp.Diff(c.fails, kinds(got.Errors)); d != "" {
				t.Errorf("errors (-want +got):\n%s%v", d, got.Errors)
			}
			if d := cmp.Diff(c.notes, kinds(got.Notes)); d != "" {
				t.Errorf("notes (-want +got):\n%s%v", d, got.Notes)
			}
			for _, x := range got.Errors {
				if x.Do == "" || x.What == "" {
					t.Errorf("%+v does not say what to do", x)
				}
			}
		})
	}
}

func kinds(found []Trouble) []string {
	var out []string
	for _, t := range found {
		out = append(out, t.Kind)
	}
	return out
}

func TestAModelIsThereUnderItsNameOrUnderAnyOther(t *testing.T) {
	t.Parallel()
	old := before()
	silent := before()
	silent.ModelVersion = ""
	for name, c := range map[string]struct {
		def    agent.Definition
		pinned bool
		models map[string]agent.Digest
		want   bool
	}{
		"its name and version":          {old, true, map[string]agent.Digest{"main": digest("main 1")}, true},
		"its version, another name":     {old, true, map[string]agent.Digest{"main": digest("main 2"), "old": digest("main 1")}, true},
		"its name, another version":     {old, true, map[string]agent.Digest{"main": digest("main 2")}, false},
		"not pinned, another version":   {old, false, map[string]agent.Digest{"main": digest("main 2")}, true},
		"not pinned, another name":      {old, false, map[string]agent.Digest{"old": digest("main 1")}, false},
		"gone":                          {old, true, nil, false},
		"no version kept, its name":     {silent, true, map[string]agent.Digest{"main": digest("main 2")}, true},
		"no version kept, name is gone": {silent, true, map[string]agent.Digest{"other": digest("main 1")}, false},
	} {
		y := yardstick{now: &worker.Inventory{Models: c.models}}
		if got := y.hasModel(c.def, c.pinned); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestOnlyWhatDiffersIsReadFromTheStore(t *testing.T) {
	t.Parallel()
	y := yardstick{now: now("pin"), store: "st"}
	if !y.reads(session()) {
		t.Error("a pinned session's is not read")
	}
	for name, m := range map[string]made{
		"the same":            session(func(m *made) { m.by.Definition = digest("clerk 2") }),
		"not known":           session(func(m *made) { m.by.Definition = "" }),
		"in another store":    session(func(m *made) { m.store = "other" }),
		"of an unknown agent": session(func(m *made) { m.agent = "gone" }),
	} {
		if y.reads(m) {
			t.Errorf("%s: it is read", name)
		}
	}
}

func TestPolicyAndBuildDriftByWhatTheTurnWasOpenedWith(t *testing.T) {
	t.Parallel()
	old := func(home string) func(*made) {
		return func(m *made) {
			m.by = agent.Identity{Definition: digest("clerk 2"), Policy: "old", Build: "b1"}
			m.home = home
		}
	}
	for home, want := range map[string]Fate{"": FateMoves, "b1": FateStays, "b2": FateMoves} {
		got := yardstick{now: now("pin"), store: "st"}.compare(turn(old(home)), found{})
		drifts := []Drift{
			{Kind: DriftPolicy, From: "old", To: digest("policy 2").Short(), Then: FateMoves},
			{Kind: DriftBuild, From: "b1", To: "b2", Then: want},
		}
		if d := cmp.Diff(drifts, got.Drifts); d != "" {
			t.Errorf("home %q (-want +got):\n%s", home, d)
		}
	}
}

func TestWhatARunThatStaysOnItsBuildWouldMissHereIsNoErrorUnlessItsSessionMissesItToo(t *testing.T) {
	t.Parallel()
	d := before()
	pays := func(m *made) { m.requests = []request{{"pay", digest("pay 1")}} }
	for home, errors := range map[string]int{"": 2, "b1": 1, "b2": 2} { // the tool, which its session will miss
		got := yardstick{now: now("pin"), store: "st"}.compare(turn(pays, func(m *made) { m.home = home }), found{def: &d})
		if len(got.Errors) != errors || len(got.Errors)+len(got.Notes) != 2 {
			t.Errorf("on %q: errors %+v, notes %+v", home, got.Errors, got.Notes)
		}
	}
}

func TestViewsSayWhatARunWasMadeWith(t *testing.T) {
	t.Parallel()
	scope := agent.Scope{Session: "s1", Life: "00000001"}
	by := agent.Identity{Definition: digest("d"), Policy: "p", Build: "b"}
	var m made
	m.session(agent.SessionView{
		Scope: scope, Agent: "clerk", Change: 3, Turns: 3, Running: 3, Store: "st", Last: &agent.TurnResult{Serial: 7}, By: by,
		Unresolved: []agent.Effect{{Tool: "pay", State: agent.StateUncertain}, {Tool: "pay", State: agent.StateUncertain}, {Tool: "mail", State: agent.StateCompensationFailed}},
	})
	want := made{scope: scope, agent: "clerk", change: 3, turns: 2, store: "st", serial: 7, by: by, holds: true, open: []string{"pay"}}
	if d := cmp.Diff(want, m, cmp.AllowUnexported(made{}, request{})); d != "" {
		t.Errorf("session (-want +got):\n%s", d)
	}
	m = made{}
	v := agent.TurnView{Agent: "clerk", Change: 3, Store: "st", Serial: 7, Definition: by.Definition, Policy: by.Policy, Build: by.Build}
	v.Approvals = []agent.Approval{{ApprovalRequest: agent.ApprovalRequest{Tool: "pay", Terms: agent.Terms{Version: digest("pay 1")}}}}
	v.Ledger = []agent.Effect{{Tool: "mail", State: agent.StateUncertain}, {Tool: "pay", State: agent.StateAwaitingApproval}}
	m.turn(v)
	want = made{agent: "clerk", change: 3, store: "st", serial: 7, by: by, open: []string{"mail"}, requests: []request{{"pay", digest("pay 1")}}}
	if d := cmp.Diff(want, m, cmp.AllowUnexported(made{}, request{})); d != "" {
		t.Errorf("turn (-want +got):\n%s", d)
	}
}

func TestGroupsCountRunsAndNameTheFirst(t *testing.T) {
	t.Parallel()
	g := newGroups()
	for _, id := range []string{"e", "b", "g", "a", "f", "c", "d"} {
		c := Crossing{Workflow: id, Type: agent.WorkflowSession, Agent: "clerk", Drifts: []Drift{{Kind: DriftDefinition, From: "1", To: "2", Then: FateKeeps}}}
		if id == "c" {
			c.Type, c.Drifts[0].Changes = agent.WorkflowTurn, []string{"limits"}
		}
		c.note(TroubleEffect, "x", "y")
		g.add(c)
	}
	other := Crossing{Workflow: "z", Type: agent.WorkflowSession, Agent: "other"}
	other.Drifts = []Drift{{Kind: DriftBuild, From: "1", To: "2"}, {Kind: DriftDefinition, From: "1", To: "2", Then: FateKeeps}}
	g.add(other)
	few := Group{Sessions: 6, Turns: 1, First: []string{"a", "b", "c", "d", "e"}}
	want := []DriftGroup{
		{"clerk", Drift{Kind: DriftDefinition, From: "1", To: "2", Changes: []string{"limits"}, Then: FateKeeps}, few},
		{"other", Drift{Kind: DriftDefinition, From: "1", To: "2", Then: FateKeeps}, Group{Sessions: 1, First: []string{"z"}}},
		{"", Drift{Kind: DriftBuild, From: "1", To: "2"}, Group{Sessions: 1, First: []string{"z"}}},
	}
	if d := cmp.Diff(want, g.list()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff([]TroubleGroup{{Trouble{TroubleEffect, "x", "y"}, few}}, troubles(g.notes)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
