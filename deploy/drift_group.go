package deploy

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// firstFew is how many workflow ids stand for all of a group.
const firstFew = 5

// A Group counts open runs that have something in common, and names the first of them.
type Group struct {
	Sessions int      `json:"sessions,omitempty"`
	Turns    int      `json:"turns,omitempty"`
	First    []string `json:"first"` // workflow ids, in their order
}

// Runs returns how many runs it counts.
func (g Group) Runs() int { return g.Sessions + g.Turns }

func (g *Group) add(c Crossing) {
	if c.Type == agent.WorkflowSession {
		g.Sessions++
	} else {
		g.Turns++
	}
	at, _ := slices.BinarySearch(g.First, c.Workflow)
	g.First = slices.Insert(g.First, at, c.Workflow)
	g.First = g.First[:min(len(g.First), firstFew)]
}

// A TroubleGroup is one trouble of many runs.
type TroubleGroup struct {
	Trouble
	Group
}

// A DriftGroup is one drift of many runs.
type DriftGroup struct {
	Agent string `json:"agent,omitempty"` // of a definition
	Drift
	Group
}

// groups collect what is found about runs, so that the many do not have to be kept.
type groups struct {
	errors, notes map[Trouble]*Group
	drifts        map[driftKey]*DriftGroup
}

// driftKey says which drifts are one.
type driftKey struct {
	agent, kind, from, to string
	then                  Fate
}

func newGroups() *groups {
	return &groups{errors: map[Trouble]*Group{}, notes: map[Trouble]*Group{}, drifts: map[driftKey]*DriftGroup{}}
}

func (g *groups) add(c Crossing) {
	addTroubles(g.errors, c, c.Errors)
	addTroubles(g.notes, c, c.Notes)
	for _, d := range c.Drifts {
		key := driftKey{kind: d.Kind, from: d.From, to: d.To, then: d.Then}
		if d.Kind == DriftDefinition {
			key.agent = c.Agent
		}
		one := g.drifts[key]
		if one == nil {
			one = &DriftGroup{Agent: key.agent, Drift: d}
			g.drifts[key] = one
		}
		if len(one.Changes) == 0 {
			one.Changes = d.Changes // in another session's space the old definition could be read
		}
		one.add(c)
	}
}

func addTroubles(all map[Trouble]*Group, c Crossing, found []Trouble) {
	for _, t := range found {
		if all[t] == nil {
			all[t] = &Group{}
		}
		all[t].add(c)
	}
}

// troubles returns groups in the order in which a worker would run into them.
func troubles(all map[Trouble]*Group) []TroubleGroup {
	order := []string{
		TroubleStore, TroubleSerial, TroubleAgent, TroubleDefinition, TroubleModel, TroubleTool, TroubleRequest, TroubleEffect, TroubleState,
	}
	out := make([]TroubleGroup, 0, len(all))
	for t, g := range all {
		out = append(out, TroubleGroup{t, *g})
	}
	slices.SortFunc(out, func(a, b TroubleGroup) int {
		return cmp.Or(slices.Index(order, a.Kind)-slices.Index(order, b.Kind), strings.Compare(a.What, b.What), strings.Compare(a.Do, b.Do))
	})
	return out
}

// list returns definitions first, then policies, then builds; of one drift the sessions' fates first.
func (g *groups) list() []DriftGroup {
	order := []string{DriftDefinition, DriftPolicy, DriftBuild}
	fates := []Fate{FateTakes, FateKeeps, FateAsks, FateEnds, FateMoves, FateStays}
	out := make([]DriftGroup, 0, len(g.drifts))
	for _, d := range g.drifts {
		out = append(out, *d)
	}
	slices.SortFunc(out, func(a, b DriftGroup) int {
		return cmp.Or(
			slices.Index(order, a.Kind)-slices.Index(order, b.Kind), strings.Compare(a.Agent, b.Agent),
			strings.Compare(a.From, b.From), strings.Compare(a.To, b.To), slices.Index(fates, a.Then)-slices.Index(fates, b.Then),
		)
	})
	return out
}
