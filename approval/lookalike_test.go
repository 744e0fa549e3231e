package approval_test

import (
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/holdfast-run/holdfast/approval"
)

func TestVisibleShowsWhatPassesForSomethingElse(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"p\u0430ypal.com":                "p⟨U+0430⟩ypal.com",
		"b\u03bfb":                       "b⟨U+03BF⟩b",
		"\u0410dmin":                     "⟨U+0410⟩dmin",
		"a\u200d\u0430b":                 "a⟨U+200D⟩⟨U+0430⟩b",
		"приvет":                         "при⟨U+0076⟩ет",
		"to: \u0441\u043e\u0441\u0430":   "to: ⟨U+0441⟩⟨U+043E⟩⟨U+0441⟩⟨U+0430⟩", // a word that reads as "coca"
		"x\u0585\u0585":                  "⟨U+0078⟩⟨U+0585⟩⟨U+0585⟩",
		"acc\u0660unt1":                  "acc⟨U+0660⟩unt1",
		"1\u06f00":                       "1⟨U+06F0⟩0",
		"ＡＢＣ１":                           "⟨U+FF21⟩⟨U+FF22⟩⟨U+FF23⟩⟨U+FF11⟩",
		"𝐚dmin ⅷ":                        "⟨U+1D41A⟩dmin ⟨U+2177⟩",
		"\u0251lice":                     "⟨U+0251⟩lice",
		"host\u2215path\uff0e12\u201134": "host⟨U+2215⟩path⟨U+FF0E⟩12⟨U+2011⟩34",
		"pa\u0336y":                      "pa⟨U+0336⟩y",
		"a\u0301\u0302\u0303\u0304":      "a\u0301\u0302\u0303⟨U+0304⟩",
	} {
		if got := approval.Visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestVisibleLeavesOrdinaryTextReadable(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"Верните деньги за заказ 42, а не за 41", "Order 42: Вернуть деньги и с почтой", "Επιστροφή χρημάτων για την παραγγελία",
		"返金してください。注文番号42", "請退款訂單42號", "환불해 주세요", "אנא החזר את הכסף", "يرجى رد المبلغ ٤٢", "กรุณาคืนเงิน", "कृपया पैसे वापस करें",
		"Größe naïve œuvre İstanbul ışık Đà Nẵng tiê\u0301\u0302ng Łódź", "50 m², 1º piso, ½ – “quoted” … ™ 12 €", "日本語text中文API",
		`{"amount":250,"to":"alice@example.com"}`,
	} {
		if got := approval.Visible(s); got != s {
			t.Errorf("got %q", got)
		}
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"p\u0430y", "\u202e⟨x\xff\u200d", "приvет", "a\u0301\u0302\u0303\u0304", "\U000e0041", "１⁄２"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := approval.Visible(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\n\r\t\x1b\x00\u200b\u202e\u2066") {
			t.Fatalf("%q shows as %q", s, got)
		}
		if unmark(got) != s {
			t.Fatalf("%q shows as %q, which is that of %q", s, got, unmark(got))
		}
	})
}

// unmark is the inverse of Visible: no two texts are shown alike.
func unmark(s string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "⟨")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		mark, after, _ := strings.Cut(rest, "⟩")
		if digits, isByte := strings.CutPrefix(mark, "x"); isByte {
			b, _ := strconv.ParseUint(digits, 16, 8)
			out.WriteByte(byte(b))
		} else {
			r, _ := strconv.ParseUint(strings.TrimPrefix(mark, "U+"), 16, 32)
			out.WriteRune(rune(r))
		}
		s = after
	}
}
