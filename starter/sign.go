package starter

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/approval/signature"
)

// signFlags are what all commands have that say something in a person's name: who it is, and by what key or
// signature that is proved.
type signFlags struct {
	as, key       string
	signatureFile string
	signedAt      string
	print         bool
}

func (s *signFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.as, "as", "", "in whose `name`: an approver of the policy (default: HOLDFAST_APPROVER, else the user)")
	f.StringVar(&s.key, "key", "", "sign with the SSH key in this `file`; a .pub file, or the word agent, uses the ssh-agent (default: HOLDFAST_KEY)")
	f.BoolVar(&s.print, "print", false, "print the bytes to sign, for a key that is elsewhere, and send nothing")
	f.StringVar(&s.signatureFile, "signature", "", "send a signature made elsewhere, from a `file`; needs the --time that --print said")
	f.StringVar(&s.signedAt, "time", "", "when it was signed, as --print said it (`RFC 3339`)")
	completeFiles(cmd, "key", "signature")
}

// check refuses flags that contradict each other.
func (s *signFlags) check() error {
	switch {
	case s.print && s.signatureFile != "":
		return usageError("--print and --signature: print the bytes first, then send the signature of them")
	case s.signatureFile != "" && s.key != "":
		return usageError("--key and --signature: the signature is there already or is to be made, not both")
	case s.signatureFile != "" && s.signedAt == "":
		return usageError("--signature without --time: the time is part of what was signed; --print said it")
	case s.signedAt != "" && s.signatureFile == "" && !s.print:
		return usageError("--time without --print or --signature: what is signed here has the present time")
	}
	if name := s.approver(); name == "" || len(name) > agent.MaxName {
		return usageError("the approver's name has %d bytes: want 1 to %d; say who you are with --as", len(name), agent.MaxName)
	}
	_, err := s.moment()
	return err
}

// approver returns in whose name the command speaks.
func (s *signFlags) approver() string {
	return cmp.Or(s.as, os.Getenv("HOLDFAST_APPROVER"), claimed())
}

// moment returns the time that is signed. It has whole seconds, so that it can be copied by hand.
func (s *signFlags) moment() (time.Time, error) {
	if s.signedAt == "" {
		return time.Now().UTC().Truncate(time.Second), nil
	}
	t, err := time.Parse(time.RFC3339Nano, s.signedAt)
	if err != nil {
		return t, usageError("--time %q: want a time such as 2026-01-02T15:04:05Z, as --print said it", line(s.signedAt, 60))
	}
	return t.UTC(), nil
}

// prove returns the armored signature of b: the one made elsewhere or one made now. Without a key it is "",
// and the name only claimed.
func (s *signFlags) prove(ctx context.Context, b []byte) (string, error) {
	if s.signatureFile != "" {
		return readSignature(s.signatureFile)
	}
	key := cmp.Or(s.key, os.Getenv("HOLDFAST_KEY"))
	if key == "" {
		return "", nil
	}
	return signWith(ctx, key, b)
}

// printSigned prints what is to be signed elsewhere, and says on stderr how to go on.
func (s *signFlags) printSigned(a *App, b []byte, at time.Time) error {
	if _, err := a.Out.Write(b); err != nil {
		return err
	}
	again := "the same command"
	if s.as == "" {
		again += " with --as " + approval.Visible(s.approver())
	}
	a.note("\nsign exactly these bytes: ssh-keygen -Y sign -n %s -f KEY FILE", signature.Namespace)
	a.note("then: %s, --signature FILE.sig --time %s in place of --print", again, at.Format(time.RFC3339Nano))
	return nil
}

// signed says whether prove will return a signature.
func (s *signFlags) signed() bool {
	return s.signatureFile != "" || cmp.Or(s.key, os.Getenv("HOLDFAST_KEY")) != ""
}

func readSignature(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("the signature: %w", err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, agent.MaxSignature+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("the signature: %w", err)
	case len(b) == 0 || len(b) > agent.MaxSignature:
		return "", fmt.Errorf("the signature in %q has not 1 to %d bytes; want the .sig file of ssh-keygen -Y sign", file, agent.MaxSignature)
	}
	return string(b), nil
}

// signWith signs with the key of a file, or the ssh-agent's.
func signWith(ctx context.Context, key string, b []byte) (string, error) {
	//nolint:contextcheck // what it waits for besides the person is the ssh-agent's local socket
	signer, err := signature.Signer(key, func(path string) ([]byte, error) { return askPassphrase(ctx, path) })
	if err != nil {
		return "", withHint(err, "a key is the file of an SSH private key; or its .pub file, or the word agent, to use the ssh-agent")
	}
	return signature.Sign(signer, b)
}
