package activities

import (
	"context"
	"encoding/json"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// A Closing is the closing record of a turn: what outlives the server's retention.
type Closing struct {
	Version int `json:"v"`
	agent.Scope
	Turn       int              `json:"turn"`
	Agent      string           `json:"agent,omitempty"`
	Definition agent.Digest     `json:"definition,omitempty"`
	Result     agent.TurnResult `json:"result"`
	Ledger     []agent.Effect   `json:"ledger,omitempty"`
	Folded     []agent.Count    `json:"folded,omitempty"`
	Approvals  []agent.Approval `json:"approvals,omitempty"`
	Refused    []agent.Refusal  `json:"refused,omitempty"` // decisions and settlements that did not count
	// Undo is the number of a late compensation of the turn; 0 is the turn itself.
	Undo int `json:"undo,omitempty"`
	// Origin is where the session was forked from, nil if it was not; see also Forked.
	Origin *agent.Origin `json:"origin,omitempty"`
	Build  string        `json:"build,omitempty"`
}

const closingVersion = 1

// Close appends what no model call took up to the transcript and writes the turn's closing record. Doing
// it again gives the same head, and the record that stands wins.
func (a *Activities) Close(ctx context.Context, in agent.CloseInput) (agent.CloseResult, error) {
	p := begin(ctx, "closing")
	defer p.stop()
	snap := a.Current()
	if err := a.admit(snap, in.Scope, in.Store, 0); err != nil {
		return agent.CloseResult{}, err
	}
	return a.close(ctx, snap, in)
}

func (a *Activities) close(ctx context.Context, s *Snapshot, in agent.CloseInput) (agent.CloseResult, error) {
	head := in.Result.Head
	if len(in.Entries) > 0 {
		var err error
		if head, err = a.Log.Append(ctx, in.Scope, head, stored(in.Entries)); err != nil {
			return agent.CloseResult{}, s.storeTrouble(ctx, "appending to the transcript", err)
		}
	}
	in.Result.Head, in.Result.Store = head, a.Store.ID()
	b, err := json.Marshal(Closing{
		Version: closingVersion, Scope: in.Scope, Turn: in.Turn, Agent: in.Agent, Definition: in.Definition,
		Result: in.Result, Ledger: in.Ledger, Folded: in.Folded, Approvals: in.Approvals, Refused: in.Refused,
		Undo: in.Undo, Origin: in.Origin, Build: a.Build,
	})
	if err != nil {
		return agent.CloseResult{}, s.final(agent.ErrInternal, "the closing record has no JSON form: %v", err)
	}
	digest, err := a.Store.Space(in.Scope).CreateClosing(ctx, store.ClosingName(in.Turn, in.Undo), b)
	switch {
	case unreadable(err):
		return agent.CloseResult{}, s.final(agent.ErrStore, "the closing record that stands cannot be read: %v", err)
	case err != nil:
		return agent.CloseResult{}, s.storeTrouble(ctx, "writing the closing record", err)
	}
	return agent.CloseResult{Closing: digest, Head: head, Store: a.Store.ID()}, nil
}
