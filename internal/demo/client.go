package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// news is a line of "holdfast run -o json", as far as it matters here.
type news struct {
	Type, Text, Answer string
	Tool               string
	Approval           string // id of a request that waits
	Digest             agent.Digest
	Verdict            agent.Verdict
}

// holdfast returns the command with these arguments, on the demo's server and no other.
func (s *stage) holdfast(args ...string) *exec.Cmd {
	cmd := exec.Command(s.cfg.Binary, append(args, "--config", s.configPath(), "--address", s.temporal.Address())...)
	cmd.Env = s.environ()
	return cmd
}

// launch starts a command that leave ends if it has not ended by itself.
func (s *stage) launch(cmd *exec.Cmd) (*process, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return nil, errLeaving
	}
	p, err := spawn(cmd)
	if err == nil {
		s.clients = append(s.clients, p)
	}
	return p, err
}

// startClient starts the command that a person would use. What it says while it follows the turn's history
// becomes the timeline.
func (s *stage) startClient() (*process, error) {
	cmd := s.holdfast("run", "--wait", "--output", "json", "--session", session, agentName, request)
	cmd.Stdout = &lines{each: s.heard}
	cmd.Stderr = &lines{each: func(l string) { s.say.event("client", "%s", l) }}
	c, err := s.launch(cmd)
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return c, nil
}

// heard takes one line from the client.
func (s *stage) heard(line string) {
	var n news
	if err := json.Unmarshal([]byte(line), &n); err != nil {
		s.fail(fmt.Errorf("the client said what is no JSON: %q", line))
		return
	}
	switch n.Type {
	case "approval.requested":
		s.say.event("turn", "tool %s waits for an approval, rule %s", approval.Visible(n.Tool), n.Verdict.Rule)
		select {
		case s.asked <- n:
		default:
			s.fail(fmt.Errorf("more than %d requests wait for approval", cap(s.asked)))
		}
	case "result":
		for l := range strings.Lines(n.Answer) {
			s.say.event("agent", "%s", approval.Visible(strings.TrimSpace(l)))
		}
	case "effect.uncertain":
		s.fail(errors.New(n.Text))
	case "notice", "turn.waiting": // the story tells it anyway, and a person may be reading a question
	default:
		s.say.event("turn", "%s", n.Text)
	}
}

// run runs a command to its end and returns what it printed.
func (s *stage) run(ctx context.Context, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := s.holdfast(args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	p, err := s.launch(cmd)
	if err != nil {
		return "", fmt.Errorf("holdfast %s: %w", args[0], err)
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.kill()
		return "", context.Cause(ctx)
	}
	if code := p.exitCode(); code != 0 {
		return "", fmt.Errorf("holdfast %s: exit code %d: %s", args[0], code, bytes.TrimSpace(errs.Bytes()))
	}
	return out.String(), nil
}

// query runs a command that prints JSON.
func (s *stage) query(ctx context.Context, v any, args ...string) error {
	out, err := s.run(ctx, append(args, "--output", "json")...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(out), v); err != nil {
		return fmt.Errorf("holdfast %s: %w", args[0], err)
	}
	return nil
}

// lines is a writer that hands on whole lines. The command's copying goroutine is its only caller.
type lines struct {
	each func(string)
	rest []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(b), nil
		}
		l.rest = rest
		if s := string(bytes.TrimSpace(line)); s != "" {
			l.each(s)
		}
	}
}
