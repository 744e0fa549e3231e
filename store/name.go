package store

import (
	"encoding/hex"
	"strings"
)

// Names of objects lie flat in the folder of their kind, because a folder of its own costs two more syncs:
// a slash becomes a comma. What is neither a letter, a digit nor one of "-_.:~" becomes "=" and two hex
// digits. Each byte is escaped by itself, so that a prefix stays a prefix.

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.:~", c) >= 0
}

func escapeName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case plainByte(c):
			b.WriteByte(c)
		case c == '/':
			b.WriteByte(',')
		default:
			b.WriteByte('=')
			b.WriteString(strings.ToUpper(hex.EncodeToString([]byte{c})))
		}
	}
	return b.String()
}

// unescapeName is the inverse of escapeName; false for a name that it does not make.
func unescapeName(esc string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(esc); i++ {
		switch c := esc[i]; {
		case plainByte(c):
			b.WriteByte(c)
		case c == ',':
			b.WriteByte('/')
		case c == '=' && i+2 < len(esc):
			raw, err := hex.DecodeString(esc[i+1 : i+3])
			if err != nil {
				return "", false
			}
			b.WriteByte(raw[0])
			i += 2
		default:
			return "", false
		}
	}
	return b.String(), escapeName(b.String()) == esc
}
