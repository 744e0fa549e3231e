package approval

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns s for display on one line: what a reader would not see, or would see elsewhere than it
// stands, is written out as ⟨U+200B⟩. That is control characters (line ends and escapes too), direction
// marks, zero-width and other invisible characters, TAG characters, spaces other than the plain one, and
// unassigned code points; a byte that is not UTF-8 becomes ⟨xFF⟩. A text that looks like such a mark is
// marked itself, so the marks cannot be forged. It is for people only: never decide on its result.
func Visible(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&out, "⟨x%02X⟩", s[i])
		case hidden(r) || r == '⟨':
			fmt.Fprintf(&out, "⟨U+%04X⟩", r)
		default:
			out.WriteString(s[i : i+n])
		}
		i += n
	}
	return out.String()
}

// Characters that unicode.IsGraphic lets through and that show nothing.
const brailleBlank = '\u2800'

func hidden(r rune) bool {
	if r == ' ' {
		return false
	}
	return !unicode.IsGraphic(r) || unicode.IsSpace(r) || unicode.Is(unicode.Zs, r) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Variation_Selector, r) || r == brailleBlank
}
