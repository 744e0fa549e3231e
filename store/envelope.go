package store

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"
)

// The stored form of an object is one line and then the bytes:
//
//	hf1 <algorithm> <key id> <checksum>\n<bytes>
//
// Algorithm "none" leaves the bytes as they are and has the key id "-". The checksum is the CRC-32C of the
// first three fields, each followed by a space, and the bytes, as 8 hex digits: it tells damage from an
// algorithm that only a newer build knows. It proves nothing against intent; digests and seals do.
const (
	envelopeVersion = "hf1"
	algorithmNone   = "none"
	keyNone         = "-"
	maxHeader       = 128 // bytes of the line
)

func checksum(fields string, b []byte) string {
	table := crc32.MakeTable(crc32.Castagnoli)
	return fmt.Sprintf("%08x", crc32.Update(crc32.Checksum([]byte(fields), table), table, b))
}

// wrap puts b into its stored form.
func wrap(b []byte) []byte {
	fields := envelopeVersion + " " + algorithmNone + " " + keyNone + " "
	out := make([]byte, 0, len(fields)+9+len(b))
	out = append(out, fields...)
	out = append(out, checksum(fields, b)...)
	out = append(out, '\n')
	return append(out, b...)
}

// unwrap returns the bytes of a stored form. With ErrDamaged it returns what could be made out, for those
// that can check pieces of it by themselves.
func unwrap(stored []byte) ([]byte, error) {
	end := bytes.IndexByte(stored[:min(len(stored), maxHeader)], '\n')
	if end < 0 {
		return stored, fmt.Errorf("no header: %w", ErrDamaged)
	}
	line, b := stored[:end], stored[end+1:]
	at := bytes.LastIndexByte(line, ' ') + 1
	fields, sum := string(line[:at]), string(line[at:])
	if checksum(fields, b) != sum {
		return b, fmt.Errorf("checksum: %w", ErrDamaged)
	}
	part := strings.Split(fields, " ")
	if len(part) != 4 || part[0] != envelopeVersion || part[1] != algorithmNone || part[2] != keyNone {
		return nil, fmt.Errorf("stored form %q is not known to this build: use a newer one", fields)
	}
	return b, nil
}
