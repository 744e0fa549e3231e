package signature

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// Signer returns what signs with a key: a private key file itself, or, for the file of a public key, the ssh-agent
// at SSH_AUTH_SOCK. The path "agent" is the agent's only key. The passphrase is asked for only when the file has
// one. Signing by the agent connects each time, so that nothing stays open.
func Signer(path string, passphrase func(path string) ([]byte, error)) (ssh.Signer, error) {
	if path == "agent" {
		return onlyKey()
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	if !bytes.Contains(b, []byte("PRIVATE KEY-----")) {
		key, _, err := ParseKey(string(b))
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", path, err)
		}
		return agentSigner{key}, nil
	}
	s, err := ssh.ParsePrivateKey(b)
	var missing *ssh.PassphraseMissingError
	if errors.As(err, &missing) && passphrase != nil {
		phrase, err := passphrase(path)
		if err != nil {
			return nil, fmt.Errorf("key %q: its passphrase: %w", path, err)
		}
		s, err = ssh.ParsePrivateKeyWithPassphrase(b, phrase)
		if err != nil {
			return nil, fmt.Errorf("key %q: the passphrase does not open it: %w", path, err)
		}
		return s, usable(s.PublicKey())
	}
	if errors.As(err, &missing) {
		return nil, fmt.Errorf("key %q has a passphrase: add it to the ssh-agent with ssh-add, and use the .pub file", path)
	}
	if err != nil {
		return nil, fmt.Errorf("key %q: %w (a key on a security key signs through the ssh-agent: use its .pub file)", path, err)
	}
	return s, usable(s.PublicKey())
}

// onlyKey finds the one key that the agent has.
func onlyKey() (ssh.Signer, error) {
	var keys []*agent.Key
	err := withAgent(func(a agent.ExtendedAgent) (err error) {
		keys, err = a.List()
		return err
	})
	if err != nil {
		return nil, err
	}
	var usables []ssh.PublicKey
	for _, k := range keys {
		if key, _, err := ParseKey(k.String()); err == nil {
			usables = append(usables, key)
		}
	}
	if len(usables) != 1 {
		return nil, fmt.Errorf("the ssh-agent has %d keys that can sign: name one by its .pub file", len(usables))
	}
	return agentSigner{usables[0]}, nil
}

// An agentSigner signs through the ssh-agent.
type agentSigner struct{ key ssh.PublicKey }

func (s agentSigner) PublicKey() ssh.PublicKey { return s.key }

func (s agentSigner) Sign(r io.Reader, b []byte) (*ssh.Signature, error) {
	return s.SignWithAlgorithm(r, b, "")
}

// SignWithAlgorithm asks for rsa-sha2-512 where that is wanted; other keys have one algorithm.
func (s agentSigner) SignWithAlgorithm(
	_ io.Reader, b []byte, algorithm string,
) (sig *ssh.Signature, err error) {
	var flags agent.SignatureFlags
	if algorithm == ssh.KeyAlgoRSASHA512 {
		flags = agent.SignatureFlagRsaSha512
	}
	err = withAgent(func(a agent.ExtendedAgent) (err error) {
		sig, err = a.SignWithFlags(s.key, b, flags)
		return err
	})
	return sig, err
}

func withAgent(do func(agent.ExtendedAgent) error) error {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if strings.TrimSpace(socket) == "" {
		return errors.New("no ssh-agent: SSH_AUTH_SOCK is not set; start one with ssh-agent, or name a private key file")
	}
	// ssh.Signer has no context; a local socket answers or refuses at once.
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(context.Background(), "unix", socket)
	if err != nil {
		return fmt.Errorf("ssh-agent: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := do(agent.NewClient(conn)); err != nil {
		return fmt.Errorf("ssh-agent: %w (is the key added? see ssh-add -l)", err)
	}
	return nil
}
