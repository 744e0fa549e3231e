package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/store"
)

// Open resolves an agent's name to the definition that the turn works with, which the store keeps, so that a running
// turn goes on with what it started with whatever the configuration says later. A session's next turn may go on with
// the definition of the one before: see [agent.Upgrade]. A long message goes to the store too. A message whose
// signature is not its sender's opens no turn, and neither does an agent that the configuration does not have any
// more: its own part of the policy would be gone.
func (a *Activities) Open(ctx context.Context, in agent.OpenInput) (agent.OpenResult, error) {
	p := begin(ctx, "opening")
	defer p.stop()
	snap := a.Current()
	if err := a.admit(snap, in.Scope, in.Store, in.Serial); err != nil {
		return agent.OpenResult{}, err
	}
	def, ok := snap.Agents[in.Agent]
	if !ok {
		return agent.OpenResult{}, snap.noAgent(in.Agent)
	}
	sender, err := snap.identify(in.Scope, in.Message)
	if err != nil {
		return agent.OpenResult{}, err
	}
	o := &opening{Activities: a, snap: snap, in: in, senders: in.Senders}
	if in.Take == "" {
		o.senders = []agent.Actor{sender}
	}
	res, err := o.open(ctx, def)
	res.Sender = sender
	return res, err
}

func (o *opening) open(ctx context.Context, def agent.Definition) (agent.OpenResult, error) {
	snap := o.snap
	_, digest, err := encoded(def)
	if err != nil {
		return agent.OpenResult{}, snap.final(agent.ErrInternal, "the definition of agent %s has no JSON form: %v", quoted(def.Name), err)
	}
	o.now = defined{def, digest}
	chosen, offer, err := o.choose(ctx)
	if err != nil {
		return agent.OpenResult{}, err
	}
	name, model, ok := snap.model(chosen.Definition)
	if !ok {
		return agent.OpenResult{}, snap.retryable(agent.ErrStaleConfig, 0, "%s", snap.noModel(chosen.Definition))
	}
	if chosen.digest == digest || offer != nil { // any other was read from the store
		if _, err := o.keepDefinition(ctx, o.in.Scope, def); err != nil {
			return agent.OpenResult{}, snap.storeTrouble(ctx, "storing the agent's definition", err)
		}
	}
	entry, err := o.messageEntry(ctx, o.in)
	if err != nil {
		return agent.OpenResult{}, snap.storeTrouble(ctx, "storing the message", err)
	}
	return agent.OpenResult{
		Definition: chosen.digest, Model: name, Limits: chosen.Limits, Offer: offer,
		Attempt:       agent.Duration(cmp.Or(model.Attempt, DefaultAttempt)),
		Heartbeat:     agent.Duration(cmp.Or(model.Heartbeat, DefaultHeartbeat)),
		ToolHeartbeat: agent.Duration(cmp.Or(snap.ToolHeartbeat, DefaultHeartbeat)),
		Store:         o.Store.ID(), Serial: snap.Serial, Entry: entry, Build: o.Build, Policy: snap.Policy.Version().Short(),
	}, nil
}

// encoded returns a definition as the store has it, and its digest.
func encoded(def agent.Definition) ([]byte, agent.Digest, error) {
	b, err := json.Marshal(def)
	return b, agent.DigestOf(b), err
}

func (a *Activities) keepDefinition(ctx context.Context, scope agent.Scope, def agent.Definition) (agent.Digest, error) {
	b, digest, err := encoded(def)
	if err != nil {
		return "", err
	}
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
	if def, err = parseDefinition(b); err != nil {
		return def, s.final(agent.ErrInternal, "the definition %s cannot be used: %v", short, err)
	}
	return def, nil
}

// parseDefinition reads a stored definition. Members that this build does not know are left alone: a newer one wrote
// them.
func parseDefinition(b []byte) (def agent.Definition, err error) {
	if err = json.Unmarshal(b, &def); err != nil {
		return agent.Definition{}, fmt.Errorf("it has no form that this build knows: %w", err)
	}
	if def.Name == "" {
		return agent.Definition{}, errors.New("it is no definition: it names no agent")
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
