package approval

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns s for display on one line: what a reader would not see, or would take for something else, is
// written out as ⟨U+200B⟩. That is
//   - control characters (line ends and escapes too), direction marks, zero-width and other invisible characters,
//     TAG characters, spaces other than the plain one, and unassigned code points;
//   - look-alikes: a letter of another script than its word has, a compatibility form of an ASCII character, and
//     the few signs that pass for ASCII punctuation. Text in another script stays as it is, if it is not made of
//     look-alikes only;
//   - what covers its neighbours: strokes over letters, piles of accents.
//
// A byte that is not UTF-8 becomes ⟨xFF⟩. A text that looks like such a mark is marked itself, so the marks cannot
// be forged. It is for people only: two texts that differ stay different, but which characters are marked changes
// with Unicode.
func Visible(s string) string {
	if plain(s) {
		return s
	}
	var out strings.Builder
	look := newLook(s)
	for i := 0; i < len(s); {
		word := wordAt(s[i:])
		if word == "" {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				fmt.Fprintf(&out, "⟨x%02X⟩", s[i])
			} else {
				put(&out, r, hidden(r) || passesForSign(r))
			}
			i += n
			continue
		}
		look.word(&out, word)
		i += len(word)
	}
	return out.String()
}

// plain says whether s is printable ASCII: nearly all is.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

func put(out *strings.Builder, r rune, marked bool) {
	if marked {
		fmt.Fprintf(out, "⟨U+%04X⟩", r)
		return
	}
	out.WriteRune(r)
}

// Characters that unicode.IsGraphic lets through and that show nothing.
const brailleBlank = '\u2800'

func hidden(r rune) bool {
	if r == ' ' {
		return false
	}
	return r == '⟨' || !unicode.IsGraphic(r) || unicode.IsSpace(r) || unicode.Is(unicode.Zs, r) ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
		unicode.Is(unicode.Variation_Selector, r) || r == brailleBlank
}
