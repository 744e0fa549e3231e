package workflows

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// validate refuses a message before it leaves a trace in history.
func (s *session) validate(m agent.Message) error {
	if err := wellFormed(m); err != nil {
		return refusal(agent.ErrMessage, err.Error())
	}
	if seen := s.st.seen(m.ID); seen != nil {
		if seen.Sum != sum(m.Text) {
			return refusal(agent.ErrMessageReused, fmt.Sprintf("message id %q was used for another text; use a new id", m.ID))
		}
		return nil
	}
	switch {
	case s.st.Closing != nil:
		return refusal(agent.ErrClosed, fmt.Sprintf("session %q is closing; start a new one", s.scope.Session))
	case len(s.st.Unresolved) >= agent.MaxUnresolved:
		return refusal(agent.ErrQueueFull, fmt.Sprintf("the outcomes of %d effects are not known; settle some first: holdfast effects %s", len(s.st.Unresolved), s.scope.Session))
	case len(s.st.Queue) >= agent.MaxQueue:
		return refusal(agent.ErrQueueFull, fmt.Sprintf("%d messages wait already; send again when some have had their turn", len(s.st.Queue)))
	}
	return nil
}

func wellFormed(m agent.Message) error {
	switch {
	case m.ID == "" || len(m.ID) > agent.MaxID || strings.ContainsFunc(m.ID, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("a message id is 1 to %d printable ASCII characters without spaces", agent.MaxID)
	case strings.TrimSpace(m.Text) == "":
		return fmt.Errorf("the message is empty")
	case len(m.Text) > agent.MaxMessage:
		return fmt.Errorf("the message has %d bytes, the limit is %d; put long material where a tool of the agent can read it", len(m.Text), agent.MaxMessage)
	case !utf8.ValidString(m.Text):
		return fmt.Errorf("the message is not UTF-8")
	case len(m.Signature) > agent.MaxSignature:
		return fmt.Errorf("the signature has %d bytes, the limit is %d", len(m.Signature), agent.MaxSignature)
	case len(m.From) > agent.MaxName:
		return fmt.Errorf("the sender's name is longer than %d bytes", agent.MaxName)
	}
	return nil
}

func refusal(kind, text string) error {
	return temporal.NewNonRetryableApplicationError(text, kind, nil)
}

// send accepts a message: into the running turn if it asks for that, else into the queue. It returns once
// the message has its place; the turn takes its own time.
func (s *session) send(ctx workflow.Context, m agent.Message) (agent.SendResult, error) {
	if seen := s.st.seen(m.ID); seen != nil {
		return agent.SendResult{Turn: seen.Turn, Duplicate: true}, nil
	}
	s.st.remember(m)
	if turn := s.running; m.Now && turn != 0 {
		// A turn that has ended cannot take it: then it waits like any other message.
		if s.forward(ctx, agent.SignalSteer, agent.Steering{Message: m}) == nil {
			s.st.assign(m.ID, turn)
			return agent.SendResult{Turn: turn, Steered: true}, nil
		}
	}
	s.st.Queue = append(s.st.Queue, m)
	s.publish()
	return agent.SendResult{Ahead: len(s.st.Queue) - 1}, nil
}
