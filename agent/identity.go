package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MaxKey is the longest idempotency key in bytes; a destination may refuse longer ones.
const MaxKey = 200

var sessionID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// ValidSessionID says whether id can name a session: a letter or digit, then at most 63 letters, digits,
// underscores or hyphens. Anything else could not be a workflow id, an object name and an HTTP header.
func ValidSessionID(id string) bool { return sessionID.MatchString(id) }

// A Digest is the lower-case hexadecimal form of a SHA-256 sum.
type Digest string

// DigestOf returns the digest of b.
func DigestOf(b []byte) Digest {
	sum := sha256.Sum256(b)
	return Digest(hex.EncodeToString(sum[:]))
}

// Valid says whether d has the form of a digest.
func (d Digest) Valid() bool {
	if len(d) != 2*sha256.Size {
		return false
	}
	for i := range len(d) {
		if c := d[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

// Short returns the first 16 digits: enough to tell identities apart, not to prove them.
func (d Digest) Short() string { return string(d[:min(len(d), 16)]) }

// A Scope is one life of a session: the prefix of all its keys and of all its objects in the store.
type Scope struct {
	Session string `json:"session"`
	Life    string `json:"life"`
}

// NewScope derives the scope of a session from the first run id of its workflow chain, which survives
// continue-as-new and reset. A session id that is used again after retention gets another life.
func NewScope(session, firstRunID string) Scope {
	return Scope{Session: session, Life: string(DigestOf([]byte(firstRunID))[:8])}
}

// String returns "<session>~<life>".
func (s Scope) String() string { return s.Session + "~" + s.Life }

// Valid says whether both parts have their form.
func (s Scope) Valid() bool {
	if !ValidSessionID(s.Session) || len(s.Life) != 8 {
		return false
	}
	_, err := strconv.ParseUint(s.Life, 16, 32)
	return err == nil && s.Life == strings.ToLower(s.Life)
}

// TurnID returns the workflow id of a session's n-th turn. It holds no slash: Temporal's HTTP API cannot
// address one.
func TurnID(session string, turn int) string { return fmt.Sprintf("%s:turn-%d", session, turn) }

// ParseTurnID is the inverse of [TurnID].
func ParseTurnID(id string) (session string, turn int, ok bool) {
	session, rest, found := strings.Cut(id, ":turn-")
	if !found || !ValidSessionID(session) {
		return "", 0, false
	}
	turn, err := strconv.Atoi(rest)
	if err != nil || turn < 1 || strconv.Itoa(turn) != rest {
		return "", 0, false
	}
	return session, turn, true
}

// UndoID returns the workflow id of the m-th late compensation of a session's n-th turn.
func UndoID(session string, turn, m int) string {
	return fmt.Sprintf("%s-undo-%d", TurnID(session, turn), m)
}

// ParseUndoID is the inverse of [UndoID].
func ParseUndoID(id string) (session string, turn, m int, ok bool) {
	before, rest, found := strings.Cut(id, "-undo-")
	if !found {
		return "", 0, 0, false
	}
	if session, turn, ok = ParseTurnID(before); !ok {
		return "", 0, 0, false
	}
	m, err := strconv.Atoi(rest)
	if err != nil || m < 1 || strconv.Itoa(m) != rest {
		return "", 0, 0, false
	}
	return session, turn, m, true
}

// A Place says where in a session something was asked for. Turns, steps and calls count from 1.
type Place struct {
	Turn int `json:"turn"`
	Step int `json:"step"` // 0 is before the first: see ToolUpgrade
	Call int `json:"call,omitempty"`
}

// ActionKey returns the idempotency key of an action:
// "<session>~<life>:turn-<n>/<step>.<call>/<first 16 hex digits of the action digest>". It holds no attempt
// number, clock or random value: a retry, a reset or a continued run derives the same key.
func ActionKey(s Scope, p Place, action Digest) string {
	return fmt.Sprintf("%s%d.%d/%s", TurnKeys(s, p.Turn), p.Step, p.Call, action.Short())
}

// TurnKeys returns what the keys of everything that a turn asked for begin with.
func TurnKeys(s Scope, turn int) string { return fmt.Sprintf("%s:turn-%d/", s, turn) }

// UndoKey returns the key of the m-th compensation of the effect with that key; m rises only by command.
func UndoKey(effect string, m int) string { return effect + "/undo-" + strconv.Itoa(m) }

// A Key is what the key of an effect says of it.
type Key struct {
	Scope Scope
	Place Place
	Undo  int // it compensates, for the n-th time; 0 is no compensation
}

var effectKey = regexp.MustCompile(`^([^~]+)~([^:]+):turn-([1-9][0-9]{0,8})/(0|[1-9][0-9]{0,8})\.([1-9][0-9]{0,8})/[0-9a-f]{16}(?:/undo-([1-9][0-9]{0,8}))?$`)

// ParseKey reads what [ActionKey] and [UndoKey] return; false if key is no effect's.
func ParseKey(key string) (Key, bool) {
	if len(key) > MaxKey {
		return Key{}, false
	}
	m := effectKey.FindStringSubmatch(key)
	if m == nil {
		return Key{}, false
	}
	number := func(i int) int {
		n, _ := strconv.Atoi(m[i]) // digits, and few
		return n
	}
	k := Key{
		Scope: Scope{Session: m[1], Life: m[2]}, Place: Place{Turn: number(3), Step: number(4), Call: number(5)}, Undo: number(6),
	}
	return k, k.Scope.Valid()
}

// ModelKey returns the key of a model call, where request is the digest of {head, new entries, agent
// definition}.
func ModelKey(s Scope, p Place, request Digest) string {
	return fmt.Sprintf("%s%d.model/%s", TurnKeys(s, p.Turn), p.Step, request.Short())
}
