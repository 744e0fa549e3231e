package activities

import (
	"context"

	"github.com/holdfast-run/holdfast/agent"
)

// Identify says who sent a steering message, as far as its signature proves it. A signature that is not the
// sender's is an error of the message that nobody can mend.
func (a *Activities) Identify(ctx context.Context, in agent.IdentifyInput) (agent.Actor, error) {
	p := begin(ctx, "identifying")
	defer p.stop()
	snap := a.Current()
	if err := a.admit(snap, in.Scope, in.Store, in.Serial); err != nil {
		return agent.Actor{}, err
	}
	return snap.identify(in.Scope, in.Message)
}

// identify says who sent a message. When it was sent is not known to better than its arrival here: keys are held
// against this machine's clock.
func (s *Snapshot) identify(scope agent.Scope, m agent.Message) (agent.Actor, error) {
	who, err := s.Policy.Identify(scope.Session, m, now())
	if err != nil {
		return agent.Actor{}, s.final(agent.ErrMessage, "the message is not from %s: %v", quoted(m.From), err)
	}
	return who, nil
}
