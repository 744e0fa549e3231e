package workflows

import (
	"fmt"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

// forkTimeout bounds one attempt to copy a transcript; it says meanwhile that it lives.
const forkTimeout = time.Hour

// fork lets the session begin where a turn of another one ended: once, before its first turn. Whoever may not, or asks
// for what cannot be had, gets the reason as the session's failure.
func (s *session) fork() error {
	f := s.in.Fork
	if f == nil || s.st.Origin != nil {
		return nil
	}
	var res agent.ForkResult
	err := ordinary(s.root, agent.ActivityFork, fmt.Sprintf("fork: %s", agent.TurnID(f.From.Session, f.Turn)), forkTimeout,
		agent.ForkInput{Scope: s.scope, Agent: s.in.Agent, Fork: *f, Store: s.st.Store, Serial: s.st.Serial}, &res)
	if err != nil {
		return err
	}
	s.st.Origin, s.st.Head = &res.Origin, res.Origin.Head
	s.st.Store, s.st.Serial = res.Store, max(s.st.Serial, res.Serial)
	return nil
}

// forkGuard is what the turns of a fork start with: the state that they would start with anyhow, in a schema that only
// builds know which know of forks. An older one would take the turn, drop where the session came from, and claim its
// intents apart from the family's.
func (s *session) forkGuard() *agent.Checkpoint {
	if s.st.Origin == nil {
		return nil
	}
	c, err := versioning.Seal(forkSchema, turnState{Head: s.st.Head, Store: s.st.Store, Serial: s.st.Serial})
	if err != nil {
		panic(err) // as in continueAsNew
	}
	return c
}

// forkSchema is the first schema of checkpoints whose builds know of forks.
const forkSchema = 3
