package workflows

import (
	"fmt"
	"time"

	"github.com/holdfast-run/holdfast/agent"
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
