package approval

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxMarks is how many accents stand on one letter: Vietnamese has two, pointed Hebrew three.
	maxMarks = 3
	// ambiguous are letters of Cyrillic, Greek and Armenian that are drawn as Latin ones are. A word of them only
	// is marked in a text that is otherwise Latin, where it passes for a Latin word.
	ambiguous = "аеорсухіјѕһԁԛԝӏвкмнтАВЕЗКМНОРСТУХІЈЅҺԌԚԜӀ" + "οιυνΑΒΕΖΗΙΚΜΝΟΡΤΥΧ" + "օոսհցզ"
	// latinTwins are Latin letters of phonetic writing that pass for others.
	latinTwins = "ɑɡɩɪʟǀǃ"
	// signTwins pass for ASCII punctuation and have no compatibility form that says so: slashes, points, colons
	// and hyphens, by which hosts, paths and account numbers are read.
	signTwins = "∕⁄⧸╱∖⧵․‧∶꞉‐‑"
)

// A look is what the whole text says about how its words are read.
type look struct {
	latin bool // there are Latin letters
	// telling are the scripts with a letter that cannot be taken for a Latin one: text in them is meant.
	telling map[string]bool
}

func newLook(s string) *look {
	l := &look{telling: map[string]bool{}}
	for _, r := range s {
		switch sc := script(r); {
		case sc == "Latin":
			l.latin = true
		case sc != "" && !strings.ContainsRune(ambiguous, r):
			l.telling[sc] = true
		}
	}
	return l
}

// wordAt returns the letters, accents and digits that s begins with. What is invisible belongs to a word too, so
// that it does not hide a change of script.
func wordAt(s string) string {
	for i, r := range s {
		inside := unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsNumber(r) || unicode.Is(unicode.Cf, r)
		if !inside || r == utf8.RuneError {
			return s[:i]
		}
	}
	return s
}

// word writes one word. The script that has most of its letters is the word's, Latin where two have as many.
func (l *look) word(out *strings.Builder, word string) {
	own, ascii := mostOf(word), false
	for _, r := range word {
		ascii = ascii || r < utf8.RuneSelf
	}
	marks := 0
	for _, r := range word {
		if unicode.IsMark(r) {
			marks++
		} else {
			marks = 0
		}
		sc := script(r)
		foreign := sc != "" && (sc != own || sc != "Latin" && l.latin && !l.telling[sc])
		digit := ascii && r >= utf8.RuneSelf && unicode.IsDigit(r)
		put(out, r, hidden(r) || foreign || digit || marks > maxMarks || overlays(r) || passesForLetter(r))
	}
}

// mostOf returns the script of most of a word's letters: Latin where two have as many, else the first of them. It counts
// in a slice, because workflows may not walk a map.
func mostOf(word string) string {
	type count struct {
		script string
		n      int
	}
	counts := []count{{script: "Latin"}}
	for _, r := range word {
		sc := script(r)
		if sc == "" {
			continue
		}
		i := slices.IndexFunc(counts, func(c count) bool { return c.script == sc })
		if i < 0 {
			i = len(counts)
			counts = append(counts, count{script: sc})
		}
		counts[i].n++
	}
	most := counts[0]
	for _, c := range counts {
		if c.n > most.n {
			most = c
		}
	}
	return most.script
}

// script returns the script of a letter, among those whose letters can be taken for each other; "" is another.
// Scripts that one word of Japanese or Korean mixes are not among them, nor are those that no Latin reader reads.
func script(r rune) string {
	if r < utf8.RuneSelf {
		if r|0x20 >= 'a' && r|0x20 <= 'z' {
			return "Latin"
		}
		return ""
	}
	if !unicode.IsLetter(r) {
		return ""
	}
	for _, sc := range [...]struct {
		name  string
		table *unicode.RangeTable
	}{
		{"Latin", unicode.Latin},
		{"Cyrillic", unicode.Cyrillic},
		{"Greek", unicode.Greek},
		{"Armenian", unicode.Armenian},
		{"Cherokee", unicode.Cherokee},
		{"Coptic", unicode.Coptic},
		{"Georgian", unicode.Georgian},
		{"Lisu", unicode.Lisu},
		{"Deseret", unicode.Deseret},
		{"Glagolitic", unicode.Glagolitic},
		{"Hebrew", unicode.Hebrew},
	} {
		if unicode.Is(sc.table, r) {
			return sc.name
		}
	}
	return ""
}

// overlays says whether r is drawn over the letter before it.
func overlays(r rune) bool { return r >= 0x0334 && r <= 0x0338 }

// passesForLetter says whether r is another form of an ASCII letter or digit: full width, bold, a Roman numeral.
func passesForLetter(r rune) bool {
	switch {
	case r < utf8.RuneSelf || r == 'ª' || r == 'º': // the ordinals of Spanish and Portuguese
		return false
	case strings.ContainsRune(latinTwins, r):
		return true
	case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Nl, r):
		return false
	}
	return strings.ContainsFunc(norm.NFKC.String(string(r)), func(c rune) bool {
		return c < utf8.RuneSelf && (unicode.IsLetter(c) || unicode.IsDigit(c))
	})
}

// passesForSign says whether r is another form of one ASCII sign.
func passesForSign(r rune) bool {
	if r < utf8.RuneSelf {
		return false
	}
	form := norm.NFKC.String(string(r))
	return len(form) == 1 && form != " " || strings.ContainsRune(signTwins, r)
}
