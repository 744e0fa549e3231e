package activities

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-run/holdfast/agent"
)

// head returns at most n bytes of the beginning of s, cut between runes.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// tail returns at most n bytes of the end of s, cut between runes.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	i := len(s) - n
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return s[i:]
}

// cut bounds s to n bytes and shows that it did.
func cut(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	return head(s, n-len(mark)) + mark
}

// excerpt returns what a model is shown of a long text: two thirds of n from the beginning, one third
// from the end, and between them how much is left out.
func excerpt(s string, n int) string {
	if len(s) <= n {
		return s
	}
	first, last := head(s, n-n/3), tail(s, n/3)
	return fmt.Sprintf("%s\n[... %d of %d bytes left out here ...]\n%s", first, len(s)-len(first)-len(last), len(s), last)
}

// textual says whether bytes of that media type are text that a model can read.
func textual(mediaType string) bool {
	kind, _, _ := strings.Cut(mediaType, ";")
	kind = strings.ToLower(strings.TrimSpace(kind))
	switch kind {
	case "", "application/json", "application/xml", "application/yaml", "application/x-yaml",
		"application/javascript", "application/x-www-form-urlencoded", "application/x-ndjson", "application/toml":
		return true
	}
	return strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml")
}

// describe stands in for bytes that are not pasted into a conversation.
func describe(b agent.Body) string {
	kind := b.Type
	if kind == "" || textual(kind) {
		kind = "not valid UTF-8 text"
	}
	return fmt.Sprintf("[%d bytes of binary data (%s), kept as %s; not shown]", b.Size, head(kind, 100), b.Digest.Short())
}
