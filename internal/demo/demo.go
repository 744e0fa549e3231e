package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// The story. The session's id is what a person looks for in the Web UI.
const (
	session = "order-42"
	order   = "42"
	request = "Order 42 arrived broken. Please refund it."
)

// turnID is the workflow that everything is about.
var turnID = agent.TurnID(session, 1)

// patience bounds the whole story: a model of somebody else's may be slow. A person who is asked has more.
const (
	patience = 5 * time.Minute
	thought  = 15 * time.Minute
)

// Config says what to run. Binary and Out are required.
type Config struct {
	// Binary is the holdfast command that worker and client are started from.
	Binary string
	// Out gets everything that a person is told.
	Out io.Writer
	// Bold marks text for a terminal; nil leaves it as it is.
	Bold func(string) string
	// Ask asks the person at the terminal; nil is for where there is none: then the demo approves by itself.
	// It returns when ctx ends.
	Ask func(ctx context.Context, question string) (yes bool, err error)
	// Keep leaves the server and the worker running at the end until the context ends.
	Keep bool
	// Model is a real model to use; nil is the scripted one.
	Model *Model
}

// A Model is an OpenAI-compatible server of somebody else's. Its key is read by the worker from the
// environment variable OPENAI_API_KEY and passes through nobody's hands here.
type Model struct {
	BaseURL string // empty is OpenAI's own
	Name    string
}

// Run runs the demo. It returns nil only when the turn is done and books and ledger show exactly one refund, or
// none because the person declined it, also when ctx ends later than that; an error names what went wrong. When it
// returns no process is left.
func Run(ctx context.Context, cfg Config) (err error) {
	dir, err := os.MkdirTemp("", "holdfast-demo-")
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	s := &stage{
		cfg: cfg, dir: dir, say: newPrinter(cfg.Out, cfg.Bold), failed: make(chan error, 4),
		asked: make(chan news, agent.MaxPending), approved: make(chan struct{}),
	}
	defer func() { err = errors.Join(err, s.leave(ctx, err)) }()

	most := patience
	if cfg.Ask != nil {
		most += thought
	}
	story, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("the demo was not over after %s", most))
	defer cancel()
	err = s.tell(story)
	switch {
	case err != nil && story.Err() != nil:
		return context.Cause(story) // what fails then fails because of it
	case err != nil || !cfg.Keep:
		return err
	}
	s.say.plain("\nStill running: %s\nCtrl-C ends it.", s.temporal.WorkflowURL(turnID))
	select {
	case <-ctx.Done():
		return nil
	case <-s.temporal.Done():
		return s.temporal.Err()
	}
}

func (s *stage) tell(ctx context.Context) error {
	if err := s.build(ctx); err != nil {
		return err
	}
	if err := s.play(ctx); err != nil {
		return err
	}
	return s.judge(ctx)
}

// play has the client ask, answers what waits for an approval, and follows the turn to its end.
func (s *stage) play(ctx context.Context) error {
	s.say.begin()
	s.say.event("you", "%s", request)
	client, err := s.startClient()
	if err != nil {
		return err
	}
	for over := false; !over; {
		select {
		case <-client.done:
			over = true
		case n := <-s.asked:
			err = s.decide(ctx, n)
		case err = <-s.failed:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
	s.finished = time.Now()
	if code := client.exitCode(); code != 0 {
		return fmt.Errorf("the turn did not end as done: the client's exit code is %d", code)
	}
	return nil
}
