package store

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// keyPath returns the path, below the bucket's folder, of an object. Each part between slashes becomes one
// file name: control bytes, "%", "\" and a dot at the beginning become "%" and two hex digits, and an empty
// part becomes a lone "%". So no name leads out of the folder, two names never share a path, and names that
// begin with a dot are free for temporary files.
func keyPath(key string) string {
	parts := strings.Split(key, "/")
	for i, p := range parts {
		parts[i] = escapePart(p)
	}
	return filepath.Join(parts...)
}

func escapePart(p string) string {
	if p == "" {
		return "%"
	}
	var b strings.Builder
	for i := range len(p) {
		c := p[i]
		if c < 0x20 || c == 0x7f || c == '%' || c == '\\' || c == '.' && i == 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescapePart is the inverse of escapePart; false for a file that is none of ours.
func unescapePart(name string) (string, bool) {
	if name == "%" {
		return "", true
	}
	if strings.HasPrefix(name, ".") {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		if i+2 >= len(name) {
			return "", false
		}
		c, err := strconv.ParseUint(name[i+1:i+3], 16, 8)
		if err != nil {
			return "", false
		}
		b.WriteByte(byte(c))
		i += 2
	}
	return b.String(), escapePart(b.String()) == name
}
