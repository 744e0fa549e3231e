package modeltest

import (
	"bytes"
	"encoding/hex"
	"regexp"
	"strconv"
)

var marks = regexp.MustCompile(`\$(PAD|DEEP):(\d+)|\$RAW:((?:[0-9a-fA-F]{2})+)`)

// maxExpansion bounds one mark, so that a slip in a case does not eat the machine.
const maxExpansion = 64 << 20

// expand replaces "$PAD:n" by n letters, "$DEEP:n" by n nested arrays and "$RAW:hex" by those bytes.
func expand(text []byte) []byte {
	return marks.ReplaceAllFunc(text, func(mark []byte) []byte {
		m := marks.FindSubmatch(mark)
		n, err := strconv.Atoi(string(m[2]))
		n = min(n, maxExpansion)
		switch {
		case len(m[3]) > 0:
			raw, _ := hex.DecodeString(string(m[3]))
			return raw
		case err != nil:
			return mark
		case string(m[1]) == "PAD":
			return bytes.Repeat([]byte("x"), n)
		}
		return append(bytes.Repeat([]byte("["), n), bytes.Repeat([]byte("]"), n)...)
	})
}
