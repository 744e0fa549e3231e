package transcript

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// What is hashed is the bytes as they are stored, after a line that says what they are. Nothing is put into
// a canonical form first, because nothing is ever encoded twice: a line of entries is written once and then
// copied. All parts of a chained digest have a fixed length, so that no two inputs run together.
const (
	entriesDomain = "holdfast/entries/1\n"
	chainDomain   = "holdfast/chain/1\n"
)

// entriesDigest returns the digest of a line of entries.
func entriesDigest(line []byte) agent.Digest {
	h := sha256.New()
	h.Write([]byte(entriesDomain))
	h.Write(line)
	return agent.Digest(hex.EncodeToString(h.Sum(nil)))
}

// chain returns the head of segment seq, where prev is the head of the segment before it ("" for the first).
// It returns "" when it is given what is no digest: no head equals that.
func chain(prev agent.Digest, seq int64, entries agent.Digest) agent.Digest {
	if prev == "" && seq == 1 {
		prev = agent.Digest(strings.Repeat("0", 2*sha256.Size))
	}
	if !prev.Valid() || !entries.Valid() || seq < 1 {
		return ""
	}
	b := make([]byte, 0, len(chainDomain)+len(prev)+8+len(entries))
	b = append(b, chainDomain...)
	b = append(b, prev...)
	b = binary.BigEndian.AppendUint64(b, uint64(seq))
	b = append(b, entries...)
	return agent.DigestOf(b)
}
