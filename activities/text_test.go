package activities

import (
	"strings"
	"testing"
)

func FuzzTextIsCutBetweenRunes(f *testing.F) {
	f.Add("aäöü€😀", 5)
	f.Add("\xff\xfe\x80\x80\x80", 2)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, s string, n int) {
		n = min(max(n, 0), 1000)
		h, e := head(s, n), tail(s, n)
		if len(h) > n || len(e) > n || !strings.HasPrefix(s, h) || !strings.HasSuffix(s, e) {
			t.Errorf("head %q, tail %q of %q at %d", h, e, s, n)
		}
		valid := strings.ToValidUTF8(s, "")
		for _, piece := range []string{head(valid, n), tail(valid, n), cut(valid, max(n, 3)), excerpt(valid, n)} {
			if strings.ToValidUTF8(piece, "") != piece {
				t.Errorf("%q is cut inside a rune", piece)
			}
		}
	})
}
