package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// Open resolves an agent's name to its definition, which it stores, so that a running turn goes on with
// what it started with whatever the configuration says later. A long message goes to the store too. A message whose
// signature is not its sender's opens no turn.
func (a *Activities) Open(ctx context.Context, in agent.OpenInput) (agent.OpenResult, error) {
	p := begin(ctx, "opening")
	defer p.stop()
	snap := a.Current()
	if err := a.admit(snap, in.Scope, in.Store, in.Serial); err != nil {
		return agent.OpenResult{}, err
	}
	def, ok := snap.Agents[in.Agent]
	if !ok {
		names := slices.Sorted(maps.Keys(snap.Agents))
		return agent.OpenResult{}, snap.final(agent.ErrUnknownAgent, "there is no agent %s; the agents are %s", quoted(in.Agent), strings.Join(names, ", "))
	}
	model, ok := snap.Models[def.Model]
	if !ok {
		return agent.OpenResult{}, snap.retryable(agent.ErrStaleConfig, 0,
			"this worker has no model %q, which agent %q uses; add it to holdfast.yaml", def.Model, in.Agent)
	}
	sender, err := snap.identify(in.Scope, in.Message)
	if err != nil {
		return agent.OpenResult{}, err
	}
	digest, err := a.keepDefinition(ctx, in.Scope, def)
	if err != nil {
		return agent.OpenResult{}, snap.storeTrouble(ctx, "storing the agent's definition", err)
	}
	entry, err := a.messageEntry(ctx, in)
	if err != nil {
		return agent.OpenResult{}, snap.storeTrouble(ctx, "storing the message", err)
	}
	return agent.OpenResult{
		Definition: digest, Model: def.Model, Limits: def.Limits,
		Attempt:       agent.Duration(cmp.Or(model.Attempt, DefaultAttempt)),
		Heartbeat:     agent.Duration(cmp.Or(model.Heartbeat, DefaultHeartbeat)),
		ToolHeartbeat: agent.Duration(cmp.Or(snap.ToolHeartbeat, DefaultHeartbeat)),
		Store:         a.Store.ID(), Serial: snap.Serial, Entry: entry, Sender: sender, Build: a.Build,
	}, nil
}

func (a *Activities) keepDefinition(ctx context.Context, scope agent.Scope, def agent.Definition) (agent.Digest, error) {
	b, err := json.Marshal(def)
	if err != nil {
		return "", err
	}
	digest := agent.DigestOf(b)
	if a.kept.has(scope, digest) {
		return digest, nil
	}
	if _, err := a.Store.Space(scope).PutBody(ctx, b, "application/json"); err != nil {
		return "", err
	}
	a.kept.add(scope, digest)
	return digest, nil
}

func (a *Activities) messageEntry(ctx context.Context, in agent.OpenInput) (agent.Entry, error) {
	e := agent.Entry{Role: agent.RoleUser, Text: in.Message.Text}
	if len(e.Text) <= agent.InlineText {
		return e, nil
	}
	body, err := a.Store.Space(in.Scope).PutBody(ctx, []byte(e.Text), "")
	if err != nil {
		return e, err
	}
	return agent.Entry{Role: agent.RoleUser, Body: &body}, nil
}

// definition returns the agent's definition whose digest begins with short: the configuration's if it has not
// changed, else the stored one.
func (a *Activities) definition(ctx context.Context, s *Snapshot, scope agent.Scope, short string) (agent.Definition, error) {
	if def, ok := s.defined()[short]; ok {
		return def, nil
	}
	var def agent.Definition
	b, err := a.storedDefinition(ctx, scope, short)
	switch {
	case errors.Is(err, store.ErrAbsent) || unreadable(err):
		return def, s.final(agent.ErrStore, "the definition %s that the turn started with cannot be read: %v; send the message again", short, err)
	case err != nil:
		return def, s.storeTrouble(ctx, "reading the agent's definition", err)
	}
	if err := json.Unmarshal(b, &def); err != nil {
		return def, s.final(agent.ErrInternal, "the definition %s has no form that this build knows: %v", short, err)
	}
	return def, nil
}

func (a *Activities) storedDefinition(ctx context.Context, scope agent.Scope, short string) ([]byte, error) {
	space := a.Store.Space(scope)
	names, err := space.List(ctx, store.KindBodies, short)
	switch {
	case err != nil:
		return nil, err
	case len(names) != 1:
		return nil, fmt.Errorf("%d bodies begin with it: %w", len(names), store.ErrAbsent)
	}
	return space.Body(ctx, agent.Body{Digest: agent.Digest(names[0])})
}
