package signature

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"
)

// Namespace is what every signature of ours is made for, so that one made for another purpose, such as a git
// commit, is no approval.
const Namespace = "holdfast-approval"

// MaxArmored is the longest armored signature in bytes that Verify looks at. An RSA key of 16,384 bits makes one
// of 6 KiB.
const MaxArmored = 16 << 10

// Sign returns the armored signature of b, over SHA-512: what "ssh-keygen -Y sign -n holdfast-approval" makes. An
// RSA key signs with rsa-sha2-512.
func Sign(s ssh.Signer, b []byte) (armored string, err error) {
	if err := usable(s.PublicKey()); err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	sig, err := sshsig.Sign(bytes.NewReader(b), s, sshsig.HashSHA512, Namespace)
	if err != nil {
		return "", fmt.Errorf("sign with %s: %w", ssh.FingerprintSHA256(s.PublicKey()), err)
	}
	return string(sshsig.Armor(sig)), nil
}

// Verify returns which of the keys made the armored signature of b. It accepts SHA-256 and SHA-512, as
// ssh-keygen does. An error names no byte of what was given, which is foreign.
func Verify(b []byte, armored string, keys []ssh.PublicKey) (ssh.PublicKey, error) {
	sig, err := parse(armored)
	if err != nil {
		return nil, err
	}
	if sig.Namespace != Namespace {
		return nil, fmt.Errorf("the signature is for another purpose; sign with the namespace %q: ssh-keygen -Y sign -n %[1]s", Namespace)
	}
	made := sig.PublicKey.Marshal()
	for _, key := range keys {
		if !bytes.Equal(key.Marshal(), made) || usable(key) != nil {
			continue
		}
		if err := sshsig.Verify(bytes.NewReader(b), sig, key, sig.HashAlgorithm, Namespace); err != nil {
			return nil, errors.New("the signature is of something else: what it was made for differs from what was sent")
		}
		return key, nil
	}
	return nil, fmt.Errorf("the signature is by another key: %s", ssh.FingerprintSHA256(sig.PublicKey))
}

// parse reads one PEM block and nothing around it: what is not signed must not come along.
func parse(armored string) (*sshsig.Signature, error) {
	const broken = "this is no SSH signature; want the text that begins with -----BEGIN SSH SIGNATURE-----"
	if len(armored) > MaxArmored {
		return nil, fmt.Errorf("a signature of %d bytes; at most %d are read", len(armored), MaxArmored)
	}
	text := strings.TrimSpace(armored)
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != sshsig.PEMType || len(rest) > 0 || len(block.Headers) > 0 ||
		!strings.HasPrefix(text, "-----BEGIN "+sshsig.PEMType) {
		return nil, errors.New(broken)
	}
	sig, err := sshsig.ParseSignature(block.Bytes)
	if err != nil {
		return nil, errors.New(broken)
	}
	return sig, nil
}
