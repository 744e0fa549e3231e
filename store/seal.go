package store

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// A record of a sealed kind is its bytes, a newline and "seal " with 64 hex digits, or with "-" when it was
// written without a key. The HMAC covers the kind and the object's whole name, so that a record cannot be
// moved to another key, kind or session.
const sealMark = "\nseal "

func (s *Store) mac(kind Kind, object string, b []byte) string {
	m := hmac.New(sha256.New, s.seal)
	for _, part := range [][]byte{[]byte("holdfast/seal/1"), []byte(kind), []byte(object), b} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		m.Write(n[:])
		m.Write(part)
	}
	return hex.EncodeToString(m.Sum(nil))
}

// sealFor returns b as an object of its kind holds it.
func (s *Store) sealFor(kind Kind, object string, b []byte) []byte {
	if !kind.sealed() {
		return b
	}
	seal := "-"
	if len(s.seal) > 0 {
		seal = s.mac(kind, object, b)
	}
	out := make([]byte, 0, len(b)+len(sealMark)+len(seal))
	out = append(out, b...)
	return append(append(out, sealMark...), seal...)
}

// unseal is the inverse of sealFor. Without a key in the configuration a seal is not looked at.
func (s *Store) unseal(kind Kind, object string, b []byte) ([]byte, error) {
	if !kind.sealed() {
		return b, nil
	}
	at := bytes.LastIndex(b, []byte(sealMark))
	if at < 0 {
		return b, fmt.Errorf("store %q: record %q has no seal line: %w", s.url, object, ErrDamaged)
	}
	record, seal := b[:at], string(b[at+len(sealMark):])
	if len(s.seal) > 0 && !hmac.Equal([]byte(seal), []byte(s.mac(kind, object, record))) {
		return nil, fmt.Errorf("store %q: record %q is not from a worker with this store.seal: find out who wrote it: %w",
			s.url, object, ErrSeal)
	}
	return record, nil
}
