package approval

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Bounds of a call's arguments.
const (
	MaxArgs   = 1 << 20 // bytes of the text
	MaxDepth  = 1000    // levels of objects and arrays
	MaxNumber = 4096    // characters of one number
)

// Canonical returns the canonical text of a call's arguments: the exact bytes that policy, digest,
// approver, ledger and tool get.
//
// The text must be one JSON object; the empty text stands for {}, since some models send that to a tool
// without parameters. Members are put in the order of RFC 8785 (UTF-16 code units of their names) and
// strings get its escapes; white space goes. Numbers stay as they are written: RFC 8785 would make them
// float64, and two account numbers equal. Refused, at any depth, are names that are there twice or differ
// only in case (Unicode simple folding, as Go's decoder compares them), invalid UTF-8, half surrogate
// pairs, and what exceeds the bounds of this package. Nothing is repaired. The error is an
// [*ArgumentError].
func Canonical(raw []byte) (string, error) {
	n, err := parse(raw)
	if err != nil {
		return "", err
	}
	return string(n.append(make([]byte, 0, len(raw)))), nil
}

// parse reads one object, its members and those of every object in it in order.
func parse(raw []byte) (node, error) {
	if len(raw) == 0 {
		return node{kind: '{'}, nil
	}
	s := &scanner{in: raw}
	if len(raw) > MaxArgs {
		return node{}, s.fail(0, "they have "+strconv.Itoa(len(raw))+" bytes and may have "+strconv.Itoa(MaxArgs)+"; send less")
	}
	n, err := s.value()
	if err != nil {
		return n, err
	}
	if s.peek(); s.at < len(raw) {
		return n, s.fail(s.at, "something follows the JSON value; send one object and nothing else")
	}
	if n.kind == '"' && holdsObject(n.text) {
		return n, s.fail(0, "they are a string that holds JSON; send the object itself, not in quotes and not escaped")
	}
	if n.kind != '{' {
		return n, s.fail(0, `they must be a JSON object, such as {"name":"value"}`)
	}
	return n, nil
}

// holdsObject says whether a canonical string is an object encoded a second time.
func holdsObject(text string) bool {
	inner, err := (&scanner{in: []byte(text)}).str()
	return err == nil && strings.HasPrefix(strings.TrimSpace(inner), "{")
}

// sort puts an object's members in order.
func (n *node) sort() {
	if slices.IsSortedFunc(n.keys, compareUTF16) {
		return
	}
	type member struct {
		key   string
		value node
	}
	members := make([]member, len(n.keys))
	for i := range members {
		members[i] = member{n.keys[i], n.values[i]}
	}
	slices.SortFunc(members, func(a, b member) int { return compareUTF16(a.key, b.key) })
	for i, m := range members {
		n.keys[i], n.values[i] = m.key, m.value
	}
}

// append writes the canonical text.
func (n *node) append(out []byte) []byte {
	if n.kind != '{' && n.kind != '[' {
		return append(out, n.text...)
	}
	out = append(out, n.kind)
	for i := range n.values {
		if i > 0 {
			out = append(out, ',')
		}
		if n.kind == '{' {
			out = append(append(out, quoteJSON(n.keys[i])...), ':')
		}
		out = n.values[i].append(out)
	}
	return append(out, n.kind+2)
}

// compareUTF16 orders valid texts by their UTF-16 code units (RFC 8785, section 3.2.3). That is the order
// of their bytes, but where a character beyond U+FFFF (first byte from F0 on), whose first unit is a
// surrogate, meets one from U+E000 to U+FFFF (first byte EE or EF).
func compareUTF16(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		switch {
		case x == y:
		case x >= 0xf0 && (y == 0xee || y == 0xef):
			return -1
		case y >= 0xf0 && (x == 0xee || x == 0xef):
			return 1
		default:
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}

// fold maps texts that are equal under Unicode simple folding to the same text.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}

// quoteJSON writes a valid text as RFC 8785, section 3.2.2.2, does: escapes only where JSON needs them.
func quoteJSON(s string) string {
	out := make([]byte, 0, len(s)+2)
	out = append(out, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\b':
			out = append(out, `\b`...)
		case '\f':
			out = append(out, `\f`...)
		case '\n':
			out = append(out, `\n`...)
		case '\r':
			out = append(out, `\r`...)
		case '\t':
			out = append(out, `\t`...)
		default:
			if c < ' ' {
				out = append(out, `\u00`...)
				out = append(out, "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
				continue
			}
			out = append(out, c)
		}
	}
	return string(append(out, '"'))
}
