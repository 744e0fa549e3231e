package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

// forkTimeout bounds one attempt to copy a transcript; it says meanwhile that it lives.
const forkTimeout = time.Hour

// fork lets the session begin where a turn of another one ended: once, before its first turn. Whoever may not, or asks
// for what cannot be had, gets the reason as the session's failure. A close does not wait for it.
func (s *session) fork() error {
	f := s.in.Fork
	if f == nil || s.st.Origin != nil {
		return nil
	}
	ctx, cancel := workflow.WithCancel(s.root)
	defer cancel()
	workflow.Go(ctx, func(ctx workflow.Context) { // one that no worker can carry out would keep the session open for ever
		if workflow.Await(ctx, func() bool { return s.st.Closing != nil }) == nil {
			cancel()
		}
	})
	var res agent.ForkResult
	err := ordinary(ctx, agent.ActivityFork, fmt.Sprintf("fork: %s", agent.TurnID(f.From.Session, f.Turn)), forkTimeout,
		agent.ForkInput{Scope: s.scope, Agent: s.in.Agent, Fork: *f, Store: s.st.Store, Serial: s.st.Serial}, &res)
	switch {
	case temporal.IsCanceledError(err) && s.st.Closing != nil && s.root.Err() == nil:
		return nil // it closes now
	case err != nil:
		return err
	}
	s.st.Origin, s.st.Head = &res.Origin, res.Origin.Head
	s.st.Store, s.st.Serial = res.Store, max(s.st.Serial, res.Serial)
	return nil
}

// guarded is what a turn starts with that an older build must not take: the state that it would start with anyhow, in a
// schema that only builds know which know all of its input. An older one would drop where the session came from, and
// claim its intents apart from the family's; or the definition that the session goes on with, and take another one
// that nobody has agreed to.
func (s *session) guarded(in agent.TurnInput) *agent.Checkpoint {
	if in.Origin == nil && in.Definition == "" {
		return nil
	}
	c, err := versioning.Seal(crossing, turnState{Head: in.Head, Store: in.Store, Serial: in.Serial})
	if err != nil {
		panic(err) // as in continueAsNew
	}
	return c
}
