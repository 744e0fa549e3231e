package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// A literal is the inside of a JSON string exactly as it stood on the wire, escapes and all; nil if the
// member was missing or null.
//
// encoding/json replaces bytes that are not UTF-8 and halves of surrogate pairs by U+FFFD and says nothing.
// Kept like this the pieces of a stream can be joined before they are read: a server may cut between the
// halves of a pair, or within a letter, and what is damaged in the end is known to be.
type literal []byte

// UnmarshalJSON keeps b; a value that is no string, such as arguments written as an object, counts as the
// string that holds its text.
func (l *literal) UnmarshalJSON(b []byte) error {
	switch {
	case string(b) == "null":
	case b[0] == '"':
		*l = append(literal{}, b[1:len(b)-1]...)
	default:
		*l = escape(b)
	}
	return nil
}

func escape(b []byte) literal {
	out := make(literal, 0, len(b)+16)
	for _, c := range b {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c < ' ':
			out = append(out, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			out = append(out, c)
		}
	}
	return out
}

// text returns the string and, if U+FFFD had to stand in for something in it, why.
func (l literal) text() (s, damage string) {
	switch {
	case !utf8.Valid(l):
		damage = "they held bytes that are not UTF-8"
	case l.halfPair():
		damage = "they held half a surrogate pair"
	}
	quoted := make([]byte, 0, len(l)+2)
	quoted = append(append(append(quoted, '"'), l...), '"')
	if err := json.Unmarshal(quoted, &s); err != nil {
		return "", "they were not a JSON string" // each piece was one, so this is for safety only
	}
	return s, damage
}

// halfPair finds a \uD800-\uDFFF escape without its other half.
func (l literal) halfPair() bool {
	for {
		i := bytes.IndexByte(l, '\\')
		if i < 0 || i+1 >= len(l) {
			return false
		}
		l = l[i:]
		unit, ok := l.unit()
		switch {
		case !ok:
			l = l[2:]
		case unit < 0xD800 || unit > 0xDFFF:
			l = l[6:]
		default:
			low, ok := l[6:].unit()
			if unit >= 0xDC00 || !ok || low < 0xDC00 || low > 0xDFFF {
				return true
			}
			l = l[12:]
		}
	}
}

// unit reads the \uXXXX escape that l begins with.
func (l literal) unit() (uint64, bool) {
	if len(l) < 6 || l[0] != '\\' || l[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(l[2:6]), 16, 16)
	return n, err == nil
}

// content is a message's content: a string, or an array of parts of which the texts count.
type content struct{ literal }

// UnmarshalJSON joins the texts of parts.
func (c *content) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return c.literal.UnmarshalJSON(b)
	}
	var parts []struct {
		Type string  `json:"type"`
		Text literal `json:"text"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		if p.Type == "" || p.Type == "text" || p.Type == "output_text" {
			c.literal = append(c.literal, p.Text...)
		}
	}
	return nil
}
