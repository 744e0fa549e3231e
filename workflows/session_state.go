package workflows

import (
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

// sessionSchema is the schema of sessionState in a checkpoint: see turnSchema.
const sessionSchema = 3

// sessionUpgrades[i] turns schema i+1 into i+2. Each has further fields so far, all of which begin empty.
func sessionUpgrades() []versioning.Upgrade {
	return []versioning.Upgrade{versioning.Same, versioning.Same}
}

// sessionState is all that a session carries from run to run.
type sessionState struct {
	Turns      int               `json:"turns"`
	Head       agent.Head        `json:"head"`
	Queue      []agent.Message   `json:"queue,omitempty"`
	Seen       []seenMessage     `json:"seen,omitempty"` // the last MaxSeen, oldest first
	Unresolved []agent.Effect    `json:"unresolved,omitempty"`
	Usage      agent.Usage       `json:"usage"`
	Last       *agent.TurnResult `json:"last,omitempty"`
	Store      string            `json:"store,omitempty"`
	Serial     int64             `json:"serial,omitempty"`
	// Closing is a close that was asked for and not decided on yet.
	Closing *agent.Close `json:"closing,omitempty"`
	// Attention is what the search attribute says, so that it is written only when it changes.
	Attention string `json:"attention,omitempty"`

	// Of schema 2.
	Settlements []letter[agent.Settlement] `json:"settlements,omitempty"` // to be looked into
	Refused     []agent.Refusal            `json:"refused,omitempty"`     // settlements and commands that did not count
	More        int                        `json:"more,omitempty"`
	Commands    []agent.Compensate         `json:"commands,omitempty"`
	Undos       int                        `json:"undos,omitempty"` // late compensations started so far
	Spent       agent.Budget               `json:"spent,omitzero"`
	Granted     agent.Budget               `json:"granted,omitzero"`
	Uncertain   int                        `json:"uncertain,omitempty"` // as the search attribute says

	// Of schema 3.
	By     agent.Identity `json:"by,omitzero"`      // what the last turn worked with
	Origin *agent.Origin  `json:"origin,omitempty"` // where the session was forked from
}

// A seenMessage makes sending idempotent across runs: the server's own deduplication is per run.
type seenMessage struct {
	ID   string `json:"id"`
	Sum  string `json:"sum"` // first 16 hex digits of the text's digest
	Turn int    `json:"turn,omitempty"`
}

func (st *sessionState) seen(id string) *seenMessage {
	for i := range st.Seen {
		if st.Seen[i].ID == id {
			return &st.Seen[i]
		}
	}
	return nil
}

func (st *sessionState) remember(m agent.Message) {
	st.Seen = append(st.Seen, seenMessage{ID: m.ID, Sum: sum(m.Text)})
	if n := len(st.Seen); n > agent.MaxSeen {
		st.Seen = st.Seen[n-agent.MaxSeen:]
	}
}

// assign notes which turn took a message. One that was forgotten meanwhile needs no note.
func (st *sessionState) assign(id string, turn int) {
	if m := st.seen(id); m != nil {
		m.Turn = turn
	}
}

func sum(text string) string { return agent.DigestOf([]byte(text)).Short() }

func (s *session) restore() error {
	if s.in.Checkpoint == nil {
		return nil
	}
	return versioning.Open(s.in.Checkpoint, sessionUpgrades(), &s.st)
}

// renewable says whether the run should continue as new now, between turns. Only history decides.
func (s *session) renewable() bool {
	return s.turns >= turnsPerRun || workflow.GetInfo(s.root).GetContinueAsNewSuggested()
}

func (s *session) continueAsNew() error {
	ctx, cancel := workflow.NewDisconnectedContext(s.root)
	defer cancel()
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) && !s.settlements.busy }); err != nil {
		return err
	}
	s.leaving = true
	if err := s.opts.guard(s.root); err != nil {
		return err
	}
	s.drain()
	checkpoint, err := versioning.Seal(schemaOf(s.change, s.in.Checkpoint, sessionSchema), s.st)
	if err != nil {
		panic(err) // the task fails, the session does not
	}
	next := s.in
	next.Checkpoint = checkpoint
	return workflow.NewContinueAsNewError(s.root, agent.WorkflowSession, next)
}

func (s *session) view() agent.SessionView {
	return agent.SessionView{
		Scope: s.scope, Agent: s.in.Agent, Tenant: s.in.Tenant, Turns: s.st.Turns, Running: s.running,
		Queued: len(s.st.Queue), Closing: s.st.Closing != nil, Refused: s.refused, Head: s.st.Head,
		Unresolved: s.st.Unresolved, Usage: s.st.Usage, Last: s.st.Last, Store: s.st.Store,
		Undoing: s.undoing, Spent: s.st.Spent, Granted: s.st.Granted,
		By: s.st.By, Origin: s.st.Origin, Change: s.change,
	}
}

func (s *session) result() agent.SessionResult {
	res := agent.SessionResult{Turns: s.st.Turns, Head: s.st.Head, Unresolved: s.st.Unresolved, Usage: s.st.Usage, Origin: s.st.Origin}
	for _, m := range s.st.Queue {
		res.Dropped = append(res.Dropped, m.ID)
	}
	if s.st.Last != nil {
		res.Closing = s.st.Last.Closing
	}
	return res
}
