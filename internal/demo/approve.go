package demo

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"fmt"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
)

// makeKey makes the throw-away key that approvals are signed with and returns its public half. It goes with
// the folder.
func makeKey(path string) (string, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(private, "holdfast demo")
	if err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))), nil
}

// approver is in whose name the demo signs.
func (s *stage) approver() string {
	if s.cfg.Ask != nil {
		return "you"
	}
	return "demo"
}

// decide shows a request and answers it: as the person at the terminal says, else with an approval.
func (s *stage) decide(ctx context.Context, n news) error {
	sheet, err := s.run(ctx, "approvals", "show", n.Approval)
	if err != nil {
		return err
	}
	s.say.plain("\n$ holdfast approvals show '%s'\n%s", n.Approval, sheet)
	yes := true
	if s.cfg.Ask != nil {
		if yes, err = s.cfg.Ask(ctx, "Approve this? [y/N] "); err != nil {
			return err
		}
	} else {
		s.say.event("demo", "there is no terminal to ask at: the demo approves, signed with its throw-away key")
	}
	answer := []string{"decline", n.Approval, "--reason", "the person at the terminal did not approve it"}
	if yes {
		answer = []string{"approve", n.Approval, "--digest", string(n.Digest)}
		s.approving.Store(true)
	}
	word, err := s.run(ctx, append(answer, "--quiet", "--as", s.approver(), "--key", s.keyPath())...)
	if err != nil {
		return err
	}
	s.say.event(s.approver(), "%s", strings.TrimSpace(word))
	if s.declined = !yes; yes {
		s.approve.Do(func() { close(s.approved) })
	}
	return nil
}
