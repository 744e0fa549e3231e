package signature

import (
	"crypto/rsa"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	maxKeyLine = 16 << 10
	minRSA     = 2048 // bits
)

// ParseKey reads one public key as authorized_keys and .pub files have it: type, base64, comment. Options before
// it are refused, since none of them is kept, and so are certificates and what is too weak to prove a person.
func ParseKey(line string) (key ssh.PublicKey, comment string, err error) {
	line = strings.TrimSpace(line)
	switch {
	case line == "":
		return nil, "", errors.New("there is no key; want a line such as ssh-ed25519 AAAA... alice")
	case len(line) > maxKeyLine:
		return nil, "", fmt.Errorf("a key of %d bytes; at most %d are read", len(line), maxKeyLine)
	case strings.ContainsAny(line, "\n\r\x00"):
		return nil, "", errors.New("more than one line; give each key a line of its own")
	case strings.Contains(line, "PRIVATE KEY"):
		return nil, "", errors.New("this is a private key; use the public one, in the file that ends in .pub")
	}
	key, comment, options, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil, "", errors.New("this is no SSH public key; want a line such as ssh-ed25519 AAAA... alice")
	}
	if len(options) > 0 {
		return nil, "", fmt.Errorf("the option %.40q before the key is not supported; leave it out", options[0])
	}
	return key, comment, usable(key)
}

// types are the keys that can sign. DSA is broken; a certificate's authority would have to be trusted first.
func types() []string {
	return []string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoRSA, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256,
	}
}

func usable(key ssh.PublicKey) error {
	if !slices.Contains(types(), key.Type()) {
		return fmt.Errorf("a key of type %q cannot be used; make one with: ssh-keygen -t ed25519", key.Type())
	}
	if c, ok := key.(ssh.CryptoPublicKey); ok {
		if r, ok := c.CryptoPublicKey().(*rsa.PublicKey); ok && r.N.BitLen() < minRSA {
			return fmt.Errorf("an RSA key of %d bits is too weak; make one with: ssh-keygen -t ed25519", r.N.BitLen())
		}
	}
	return nil
}
