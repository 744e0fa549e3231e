package payments

import (
	"errors"
	"fmt"
	"strings"
)

const maxKey = 255 // bytes

// parseKey reads the value of an Idempotency-Key header, a string of RFC 8941 (section 4.2.5): in quotes,
// printable ASCII, with backslash escapes for the quote and the backslash only.
func parseKey(values []string) (string, error) {
	if len(values) != 1 {
		return "", fmt.Errorf("%d Idempotency-Key headers: want exactly one", len(values))
	}
	s := strings.Trim(values[0], " ")
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return "", fmt.Errorf("Idempotency-Key %q: want a structured field string, in double quotes", s)
	}
	key, err := unescape(s[1 : len(s)-1])
	if err != nil {
		return "", fmt.Errorf("Idempotency-Key %q: %w", s, err)
	}
	if key == "" || len(key) > maxKey {
		return "", fmt.Errorf("Idempotency-Key of %d bytes: want 1 to %d", len(key), maxKey)
	}
	return key, nil
}

func unescape(s string) (string, error) {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\':
			i++
			if i == len(s) || (s[i] != '"' && s[i] != '\\') {
				return "", errors.New("a backslash may stand only before a quote or a backslash")
			}
			c = s[i]
		case c == '"':
			return "", errors.New("a quote inside must be escaped")
		case c < 0x20 || c > 0x7e:
			return "", errors.New("only printable ASCII is allowed")
		}
		out.WriteByte(c)
	}
	return out.String(), nil
}
