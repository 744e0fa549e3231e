package deploy

import (
	"fmt"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/worker"
)

// A yardstick is what runs are compared with: what this build and this file would use.
type yardstick struct {
	now   *worker.Inventory
	store string // identity of the store that the file names, empty if it could not be opened
}

// found is an old definition as the store has it.
type found struct {
	def *agent.Definition // nil if there is none to be had
	why string            // then why; empty if nobody looked
}

// reads says whether a run's old definition has to be read before the run can be compared.
func (y yardstick) reads(m made) bool {
	a, known := y.now.Agents[m.agent]
	return known && m.by.Definition != "" && m.by.Definition != a.Digest && !y.foreign(m)
}

// foreign says that a run's objects are in another store than the one that the file names.
func (y yardstick) foreign(m made) bool { return m.store != "" && y.store != "" && m.store != y.store }

// compare says what becomes of a run. Its old definition is there if [yardstick.reads] says that it has to be.
func (y yardstick) compare(m made, old found) Crossing {
	c := Crossing{Workflow: m.workflow, Run: m.run, Type: m.typ, Agent: m.agent, Change: m.change, By: m.by}
	y.taken(&c, m)
	if a, known := y.now.Agents[m.agent]; known {
		c.Upgrade = a.Upgrade
		y.definition(&c, m, a, old)
		y.requests(&c, m)
	}
	y.effects(&c, m)
	if from, to := m.by.Policy, y.now.Policy.Short(); from != "" && from != to {
		c.Drifts = append(c.Drifts, Drift{Kind: DriftPolicy, From: from, To: to, Then: FateMoves})
	}
	then := FateMoves
	if m.home != "" && m.home != y.now.Build {
		then = FateStays
		c.spare(m.home)
	}
	if from := m.by.Build; from != "" && from != y.now.Build {
		c.Drifts = append(c.Drifts, Drift{Kind: DriftBuild, From: from, To: y.now.Build, Then: then})
	}
	return c
}

// spare makes notes of a run's errors: Temporal keeps it on another build, whose workers have a configuration of
// their own, so that only their end would bring it here. What its session is pinned to comes here after it.
func (c *Crossing) spare(home string) {
	all := c.Errors
	c.Errors = nil
	for _, t := range all {
		if c.Upgrade == agent.UpgradePin && (t.Kind == TroubleTool || t.Kind == TroubleModel) {
			c.fail(t.Kind, t.What, "when the turn has ended, its session comes to this build: "+t.Do)
			continue
		}
		c.note(t.Kind, t.What, fmt.Sprintf("Temporal keeps the run on build %s: leave its workers and their configuration until it has ended (holdfast deploy drain %s)", home, home))
	}
}

// taken looks at what makes every worker of this file refuse the run's work.
func (y yardstick) taken(c *Crossing, m made) {
	if _, known := y.now.Agents[m.agent]; !known {
		c.fail(TroubleAgent, fmt.Sprintf("the file has no agent %q", m.agent),
			"put it back until its sessions are closed: no turn of theirs could begin")
	}
	if y.foreign(m) {
		c.fail(TroubleStore, fmt.Sprintf("the run is in the store %s, and the file names %s", m.store, y.store),
			"name the store that its workers use under store.url: workers with another one refuse the work")
	}
	if m.serial > y.now.Serial {
		c.fail(TroubleSerial, fmt.Sprintf("the file's serial %d is below %d, which the run has seen", y.now.Serial, m.serial),
			"raise serial: workers with a lower one refuse the work")
	}
}

// definition looks at the definition that the run has, or that its session goes on with.
func (y yardstick) definition(c *Crossing, m made, a worker.InventoryAgent, old found) {
	from := m.by.Definition
	unknown := from == "" && m.turns > 0
	if from == a.Digest || from == "" && !unknown {
		return // the same, or no turn has been opened yet
	}
	d := Drift{Kind: DriftDefinition, From: string(from), To: string(a.Digest), Then: fate(m, a.Upgrade)}
	if old.def != nil {
		d.Changes = a.Changes(*old.def)
	}
	c.Drifts = append(c.Drifts, d)
	switch {
	case d.Then == FateTakes || y.foreign(m):
		return // the old one is of no use any more, or was not looked for
	case old.def == nil && old.why != "":
		do := "give the store its object back, or let the agent follow (upgrade: follow): no turn could begin with it"
		if d.Then == FateEnds {
			do = "give the store its object back: the turn cannot go on without it"
		}
		c.fail(TroubleDefinition, fmt.Sprintf("the definition %s of agent %q cannot be read: %s", from.Short(), m.agent, old.why), do)
	case old.def != nil:
		y.parts(c, a.Upgrade, *old.def)
	}
}

func fate(m made, u agent.Upgrade) Fate {
	switch {
	case m.typ == agent.WorkflowTurn:
		return FateEnds
	case !m.holds:
		return FateTakes // it does not hand on what it was made with
	case u == agent.UpgradePin:
		return FateKeeps
	case u == agent.UpgradeAsk:
		return FateAsks
	}
	return FateTakes
}

// parts looks for what a definition names that this build does not have. Only a pinned one needs the versions that
// it names: else the names count (see activities, which decide so when they have the work).
func (y yardstick) parts(c *Crossing, u agent.Upgrade, def agent.Definition) {
	pinned := u == agent.UpgradePin
	if !y.hasModel(def, pinned) {
		do := "keep an entry of that name under models until these runs need it no more"
		if pinned {
			do = "keep the old entry under models, under any name, or let the agent follow (upgrade: follow)"
		}
		c.fail(TroubleModel, fmt.Sprintf("model %q is not there as agent %q was defined with it", def.Model, def.Name), do)
	}
	for _, t := range def.Tools {
		now, there := y.now.Tools[t.Name]
		switch {
		case there && (now == t.Version || !pinned):
		case pinned:
			c.fail(TroubleTool, fmt.Sprintf("tool %q %s, which agent %q was defined with, %s", t.Name, t.Version.Short(), def.Name, gone(there)),
				"keep its declaration as it was, or let the agent follow (upgrade: follow): as it is, these sessions go on without the tool")
		default:
			c.note(TroubleTool, fmt.Sprintf("tool %q of agent %q is not there any more", t.Name, def.Name), "the model is not offered it, and told so if it asks for it")
		}
	}
}

// hasModel says whether this build has the model that a definition means: the one of that name, and for a pinned
// definition in its version, which may stand under any other name too.
func (y yardstick) hasModel(def agent.Definition, pinned bool) bool {
	v, there := y.now.Models[def.Model]
	if !pinned || def.ModelVersion == "" || v == def.ModelVersion {
		return there
	}
	for _, v := range y.now.Models {
		if v == def.ModelVersion {
			return true
		}
	}
	return false
}

// requests looks for actions that wait for people and that this build would not run as they were asked for.
func (y yardstick) requests(c *Crossing, m made) {
	for _, r := range m.requests {
		now, there := y.now.Tools[r.tool]
		if r.tool == agent.ToolUpgrade || there && (r.version == "" || r.version == now) {
			continue
		}
		what := fmt.Sprintf("an action of tool %q %s waits for approval, and that version %s", r.tool, r.version.Short(), gone(there))
		if c.Upgrade == agent.UpgradePin {
			c.fail(TroubleRequest, what, "keep its declaration as it was, or a worker of the old build until the turn has ended")
			continue
		}
		then := "approved, it will not be run: the model is told to ask again"
		if m.home != "" && m.home != y.now.Build {
			then = fmt.Sprintf("build %s runs it once it is approved, as long as its workers keep their file; moved to this build, it will not be run and is asked for again", m.home)
		}
		c.note(TroubleRequest, what, then)
	}
}

// effects looks for those whose outcome nobody could be asked about any more.
func (y yardstick) effects(c *Crossing, m made) {
	for _, tool := range m.open {
		if _, there := y.now.Tools[tool]; !there {
			c.note(TroubleEffect, fmt.Sprintf("an effect of tool %q is uncertain, and the tool is not there any more", tool),
				"nobody can ask what became of it: settle it by hand (holdfast attention)")
		}
	}
}

func gone(there bool) string {
	if there {
		return "is declared otherwise now"
	}
	return "is not there any more"
}

func (c *Crossing) fail(kind, what, do string) { c.Errors = append(c.Errors, Trouble{kind, what, do}) }

func (c *Crossing) note(kind, what, do string) { c.Notes = append(c.Notes, Trouble{kind, what, do}) }
