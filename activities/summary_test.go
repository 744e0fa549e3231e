package activities

import (
	"strings"
	"testing"
)

func TestASummaryIsShortVisibleAndMasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://")
	for _, c := range []struct{ args, want string }{
		{`{}`, "pay"},
		{`{"a":{"x":1},"amount":9007199254740993,"n":null,"to":"acme","z":"later"}`, "pay 9007199254740993 acme"},
		{`{"to":"` + hush + `"}`, "pay ***"},
		{"{\"to\":\"ac\u200bme\"}", "pay ac⟨U+200B⟩me"},
		{`{"path":"/srv/notes/of/2026/new.txt","content":"hi"}`, "pay …v/notes/of/2026/new.txt hi"},
		{`{"to":"` + strings.Repeat("x", 10) + hush + strings.Repeat("x", 20) + `"}`, "pay …et]" + strings.Repeat("x", 20)},
	} {
		got := w.snap.summary("pay", c.args)
		if strings.Contains(got, hush) || len([]rune(got)) > maxSummary || (c.want != "pay ***" && got != c.want) {
			t.Errorf("summary of %s is %q, want %q", c.args, got, c.want)
		}
	}
}

func TestResourcesTakeArgumentsAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ template, args, want string }{
		{"", `{}`, ""},
		{"orders/{id}/x", `{"id":9007199254740993}`, "orders/9007199254740993/x"},
		{"orders/{id}", `{"id":"ä\"b"}`, `orders/ä"b`},
		{"orders/{id}", `{"id":[1]}`, "orders/"},
		{"orders/{id", `{"id":"7"}`, "orders/7"},
	} {
		if got := resource(c.template, c.args); got != c.want {
			t.Errorf("resource(%q, %s) = %q, want %q", c.template, c.args, got, c.want)
		}
	}
}
