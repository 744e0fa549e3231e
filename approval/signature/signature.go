package signature

import (
	"errors"

	"golang.org/x/crypto/ssh"
)

// Namespace is what every signature of ours is made for, so that one made for another purpose, such as a git
// commit, is no approval.
const Namespace = "holdfast-approval"

// Sign signs b and returns the armored signature.
func Sign(s ssh.Signer, b []byte) (armored string, err error) {
	return "", errors.New("signature: not built yet")
}

// Verify says which of the keys made the armored signature of b.
func Verify(b []byte, armored string, keys []ssh.PublicKey) (ssh.PublicKey, error) {
	return nil, errors.New("signature: not built yet")
}

// ParseKey reads a public key as authorized_keys and .pub files have it: type, base64, comment.
func ParseKey(line string) (key ssh.PublicKey, comment string, err error) {
	key, comment, _, _, err = ssh.ParseAuthorizedKey([]byte(line))
	return key, comment, err
}

// Signer returns what signs with the key in a file: of a private key itself, or, for a public key's file, the
// ssh-agent's at SSH_AUTH_SOCK. The passphrase is asked for only when the key has one.
func Signer(path string, passphrase func(path string) ([]byte, error)) (ssh.Signer, error) {
	return nil, errors.New("signature: not built yet")
}
