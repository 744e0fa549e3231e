package policy

import (
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval/signature"
)

const (
	// skew is how far the clocks of a person's machine and the server may be apart.
	skew = 5 * time.Minute
	// maxAge is how long a signed settlement or order counts after it was signed. A copy of a signal could be
	// sent again later.
	maxAge = time.Hour
)

// A proof is what is to show who says something.
type proof struct {
	by        string
	signature string
	signed    time.Time // as the person says
	at        time.Time // as the server says
	needed    bool      // a claimed name does not do
	bytes     func() []byte
}

// prove returns the fingerprint of the key that signed, "" if the name is only claimed. A signature that is there
// must be right, also where none is needed.
func (p *Policy) prove(x proof) (key string, err error) {
	if x.signature == "" {
		if x.needed {
			return "", refuse("it has no signature, and without one anybody could say that they are %q: sign it with an SSH key", x.by)
		}
		return "", nil
	}
	a, known := p.people[x.by]
	if !known {
		return "", refuse("it is signed, and policy has no approver %q whose key could prove it", x.by)
	}
	keys := make([]ssh.PublicKey, 0, len(a.Keys))
	for _, k := range a.Keys {
		keys = append(keys, k.Key)
	}
	made, err := signature.Verify(x.bytes(), x.signature, keys)
	if err != nil {
		return "", refuse("its signature does not prove that it is %q: %v", x.by, err)
	}
	return ssh.FingerprintSHA256(made), a.counts(made, x)
}

// counts says whether the key that signed could be used at the time. A key's expiry goes by the server's clock:
// whoever has an old key can write any time.
func (a Approver) counts(made ssh.PublicKey, x proof) error {
	for _, k := range a.Keys {
		if string(k.Key.Marshal()) != string(made.Marshal()) {
			continue
		}
		switch name := ssh.FingerprintSHA256(made); {
		case k.Revoked:
			return refuse("the key %s of %q is revoked", name, x.by)
		case !k.Expires.IsZero() && !x.at.Before(k.Expires):
			return refuse("the key %s of %q expired at %s", name, x.by, stamp(k.Expires))
		}
	}
	switch {
	case x.signed.IsZero():
		return refuse("it is signed and has no time")
	case x.signed.After(x.at.Add(skew)):
		return refuse("its time %s is after the server's, %s: set the clock right", stamp(x.signed), stamp(x.at))
	}
	return nil
}

// statement checks what every statement of a person has.
func statement(by, reason, sig, ref string) error {
	switch {
	case !visible(by):
		return refuse("it does not say who decides: a name has 1 to %d bytes, all of them visible", agent.MaxName)
	case len(reason) > agent.MaxReason:
		return refuse("its reason has %d bytes; %d is the most", len(reason), agent.MaxReason)
	case len(sig) > agent.MaxSignature:
		return refuse("its signature has %d bytes; %d is the most", len(sig), agent.MaxSignature)
	case len(ref) > agent.MaxRef:
		return refuse("its ref has %d bytes; %d is the most", len(ref), agent.MaxRef)
	}
	return nil
}
