package approval

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A node is a JSON value. An object has keys, one for each of its values; an array has values only; of
// the rest, text is the canonical text, a number's being its own.
type node struct {
	kind   byte // '{', '[', '"', '0' for a number, 't', 'f', 'n'
	text   string
	keys   []string
	values []node
}

type scanner struct {
	in    []byte
	at    int
	depth int
}

func (s *scanner) fail(at int, reason string) error {
	e := &ArgumentError{Reason: reason, At: at}
	if at < len(s.in) {
		e.Near = quoted(s.in[at:], 24)
	}
	return e
}

// peek skips white space and returns the next byte, 0 at the end. A 0 in the input is no token either,
// so both end in the same complaint.
func (s *scanner) peek() byte {
	for s.at < len(s.in) {
		switch c := s.in[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) value() (node, error) {
	switch c := s.peek(); {
	case c == '{' || c == '[':
		return s.container(c)
	case c == '"':
		text, err := s.str()
		return node{kind: '"', text: quoteJSON(text)}, err
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	case c == 't' || c == 'f' || c == 'n':
		for _, w := range []string{"true", "false", "null"} {
			if w[0] == c && bytes.HasPrefix(s.in[s.at:], []byte(w)) {
				s.at += len(w)
				return node{kind: c, text: w}, nil
			}
		}
	case c == 0 && s.at == len(s.in):
		return node{}, s.fail(s.at, "the JSON text is cut off; send all of it")
	}
	return node{}, s.fail(s.at, "this is not a JSON value; send an object, array, string in double quotes, number, true, false or null")
}

// container reads an object or array. Its depth is checked before it descends, so that no text makes it
// go deeper than MaxDepth.
func (s *scanner) container(open byte) (node, error) {
	if s.depth++; s.depth > MaxDepth {
		return node{}, s.fail(s.at, "nested more than "+strconv.Itoa(MaxDepth)+" levels deep; send a flatter value")
	}
	n, end := node{kind: open}, open+2 // in ASCII '{' + 2 is '}' and '[' + 2 is ']'
	var names map[string]string
	if open == '{' {
		names = map[string]string{}
	}
	s.at++
	for s.peek() != end {
		if len(n.values) > 0 {
			if s.peek() != ',' {
				return n, s.unfinished(open)
			}
			s.at++
		}
		if open == '{' {
			key, err := s.key(names)
			if err != nil {
				return n, err
			}
			n.keys = append(n.keys, key)
		}
		v, err := s.value()
		if err != nil {
			return n, err
		}
		n.values = append(n.values, v)
	}
	s.at++
	s.depth--
	n.sort()
	return n, nil
}

func (s *scanner) unfinished(open byte) error {
	if s.at == len(s.in) {
		return s.fail(s.at, "the JSON text is cut off; send all of it")
	}
	if open == '{' {
		return s.fail(s.at, `in an object a value is followed by "," or "}"`)
	}
	return s.fail(s.at, `in an array a value is followed by "," or "]"`)
}

// key reads a member's name. It refuses names that not every reader can tell apart: parsers differ on
// which of two equal ones wins, and Go's decoder takes names that differ in case for the same field.
func (s *scanner) key(names map[string]string) (string, error) {
	if s.peek() != '"' {
		if s.at == len(s.in) {
			return "", s.unfinished('{')
		}
		return "", s.fail(s.at, "here the name of a member must begin; put names in double quotes and no comma after the last member")
	}
	start := s.at
	key, err := s.str()
	if err != nil {
		return "", err
	}
	folded := fold(key)
	switch other, twice := names[folded]; {
	case twice && other == key:
		return "", s.fail(start, "the name "+quoted(key, 60)+" is there twice in one object; send it once")
	case twice:
		return "", s.fail(start, "the names "+quoted(other, 60)+" and "+quoted(key, 60)+" differ only in case; send one of them")
	}
	names[folded] = key
	if s.peek() != ':' {
		if s.at == len(s.in) {
			return "", s.unfinished('{')
		}
		return "", s.fail(s.at, `the name of a member is followed by ":" and its value`)
	}
	s.at++
	return key, nil
}

// number reads a number by the grammar of RFC 8259, section 6, and keeps it as it is written.
func (s *scanner) number() (node, error) {
	start := s.at
	digits := func() bool {
		from := s.at
		for s.at < len(s.in) && s.in[s.at] >= '0' && s.in[s.at] <= '9' {
			s.at++
		}
		return s.at > from
	}
	next := func(oneOf string) bool {
		if s.at < len(s.in) && bytes.IndexByte([]byte(oneOf), s.in[s.at]) >= 0 {
			s.at++
			return true
		}
		return false
	}
	next("-")
	ok := next("0") || digits()
	if ok && next(".") {
		ok = digits()
	}
	if ok && next("eE") {
		next("+-")
		ok = digits()
	}
	if !ok || s.at < len(s.in) && bytes.IndexByte([]byte("0123456789+-.xXeE_"), s.in[s.at]) >= 0 {
		return node{}, s.fail(start, "this is not a JSON number; write digits with an optional sign, fraction and exponent, without leading zeros")
	}
	if s.at-start > MaxNumber {
		return node{}, s.fail(start, "a number of more than "+strconv.Itoa(MaxNumber)+" characters; send it as a string if it is an identifier")
	}
	return node{kind: '0', text: string(s.in[start:s.at])}, nil
}

// str reads a string and returns what it means.
func (s *scanner) str() (string, error) {
	start := s.at
	s.at++
	var out []byte
	for s.at < len(s.in) {
		switch c := s.in[s.at]; {
		case c == '"':
			s.at++
			return string(out), nil
		case c == '\\':
			var err error
			if out, err = s.escape(out); err != nil {
				return "", err
			}
		case c < ' ':
			return "", s.fail(s.at, `a control character inside a string; escape it, such as \n or \u0000`)
		case c < utf8.RuneSelf:
			out = append(out, c)
			s.at++
		default:
			r, n := utf8.DecodeRune(s.in[s.at:])
			if r == utf8.RuneError && n == 1 {
				return "", s.fail(s.at, "a byte that is not UTF-8; send text in UTF-8, other bytes encoded")
			}
			out = append(out, s.in[s.at:s.at+n]...)
			s.at += n
		}
	}
	return "", s.fail(start, "the string is cut off; send all of it")
}

func (s *scanner) escape(out []byte) ([]byte, error) {
	start := s.at
	if s.at++; s.at < len(s.in) {
		c := s.in[s.at]
		s.at++
		if i := bytes.IndexByte([]byte(`"\/bfnrt`), c); i >= 0 {
			return append(out, "\"\\/\b\f\n\r\t"[i]), nil
		}
		if c == 'u' {
			r, err := s.unicode(start)
			return utf8.AppendRune(out, r), err
		}
	}
	return nil, s.fail(start, `not an escape that JSON knows; after a backslash comes one of "\/bfnrtu`)
}

// unicode reads the digits of an escape that began at start, and a second one where the first is half of
// a surrogate pair. Half a pair is no character: it must not become U+FFFD.
func (s *scanner) unicode(start int) (rune, error) {
	r, ok := s.hex4()
	if !ok {
		return 0, s.fail(start, `\u is followed by four hexadecimal digits`)
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if bytes.HasPrefix(s.in[s.at:], []byte(`\u`)) {
		s.at += 2
		if low, ok := s.hex4(); ok {
			if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
				return pair, nil
			}
		}
	}
	return 0, s.fail(start, "half of a surrogate pair is no character; send both halves, or the character itself")
}

func (s *scanner) hex4() (rune, bool) {
	if s.at+4 > len(s.in) {
		return 0, false
	}
	var r rune
	for _, c := range s.in[s.at : s.at+4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	s.at += 4
	return r, true
}
