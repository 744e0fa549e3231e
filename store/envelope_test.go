package store

import (
	"bytes"
	"errors"
	"testing"
)

func TestTheStoredFormIsFixed(t *testing.T) {
	t.Parallel()
	// CRC-32C of "hf1 none - {}", from another implementation.
	if got, want := string(wrap([]byte("{}"))), "hf1 none - bbbb378d\n{}"; got != want {
		t.Errorf("stored form %q, want %q", got, want)
	}
}

func TestEveryFlippedOrMissingByteIsDamage(t *testing.T) {
	t.Parallel()
	good := wrap([]byte("some bytes\nand more"))
	for i := range good {
		for _, bad := range [][]byte{good[:i], append(append(bytes.Clone(good[:i]), good[i]^1), good[i+1:]...)} {
			if b, err := unwrap(bad); !errors.Is(err, ErrDamaged) {
				t.Errorf("byte %d: %q, %v", i, b, err)
			}
		}
	}
	if _, err := unwrap(append(bytes.Clone(good), 'x')); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

func TestAnUnknownAlgorithmIsNotDamage(t *testing.T) {
	t.Parallel()
	for _, fields := range []string{"hf1 aes256gcm key-7 ", "hf2 none - ", "hf1 none k "} {
		_, err := unwrap([]byte(fields + checksum(fields, []byte("secret")) + "\nsecret"))
		usable(t, err)
	}
}

func FuzzUnwrap(f *testing.F) {
	f.Add(wrap([]byte("x")))
	f.Add([]byte("hf1 none - 00000000\n"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := unwrap(raw)
		if err == nil && !bytes.Equal(wrap(b), raw) {
			t.Fatalf("%q unwraps to %q, which is stored otherwise", raw, b)
		}
		if b, err := unwrap(wrap(raw)); err != nil || !bytes.Equal(b, raw) {
			t.Fatalf("%q came back as %q, %v", raw, b, err)
		}
	})
}
