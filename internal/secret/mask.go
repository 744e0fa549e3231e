package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Placeholder stands where a secret stood.
const Placeholder = "[secret]"

// MinLength is the shortest value in bytes that is masked. A shorter one would take pieces out of
// ordinary text, and by where they are missing would tell what it is.
const MinLength = 6

// Check returns an error for a value that [New] would ignore, so that a configuration with it is refused
// at start. The error does not hold the value; ref is where it came from.
func Check(ref, value string) error {
	if n := len(strings.TrimSpace(value)); n < MinLength {
		return fmt.Errorf("secret %q: has %d bytes and could not be masked; use one of at least %d", ref, n, MinLength)
	}
	return nil
}

// A Mask replaces secret values by [Placeholder]. A nil Mask replaces nothing. It is safe for concurrent
// use.
type Mask struct {
	replacer *strings.Replacer
}

// New returns a mask of the values, without regard to white space around them. Values shorter than
// [MinLength] are ignored: see [Check].
func New(values ...string) *Mask {
	var all []string
	for _, v := range values {
		if v = strings.TrimSpace(v); len(v) >= MinLength {
			all = append(all, forms(v)...)
		}
	}
	// The longest first: of two forms that begin at the same place the replacer takes the earlier one.
	slices.SortFunc(all, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	var pairs []string
	for _, f := range slices.Compact(all) {
		pairs = append(pairs, f, Placeholder)
	}
	if len(pairs) == 0 {
		return nil
	}
	return &Mask{replacer: strings.NewReplacer(pairs...)}
}

// forms returns the texts that v may be found as.
func forms(v string) []string {
	out := []string{v}
	for _, quoted := range []string{strconv.Quote(v), strconv.QuoteToASCII(v)} {
		out = append(out, quoted[1:len(quoted)-1])
	}
	for _, escaped := range []string{url.QueryEscape(v), url.PathEscape(v), (&url.URL{Path: v}).EscapedPath()} {
		out = append(out, escaped, lowerHex(escaped))
	}
	for _, html := range []bool{false, true} {
		j := jsonText(v, html)
		out = append(out, j, jsonText(j, html)) // once, and inside a string that holds JSON
	}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		out = append(out, e.EncodeToString([]byte(v)))
		for shift := range 3 {
			out = append(out, aligned(e, v, shift))
		}
	}
	return out
}

// aligned returns the characters of the base64 form that v alone decides when shift bytes stand before
// it in its group of three.
func aligned(e *base64.Encoding, v string, shift int) string {
	coded := e.WithPadding(base64.NoPadding).EncodeToString(append(make([]byte, shift), v...))
	first := (shift*8 + 5) / 6
	last := (shift + len(v)) * 8 / 6
	return coded[first:last]
}

func lowerHex(escaped string) string {
	b := []byte(escaped)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
		}
	}
	return string(b)
}

func jsonText(v string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	if e.Encode(v) != nil { // a string always has a JSON form
		return v
	}
	s := strings.TrimSuffix(b.String(), "\n")
	return s[1 : len(s)-1]
}

// String returns s with every secret replaced.
func (m *Mask) String(s string) string {
	if m == nil {
		return s
	}
	return m.replacer.Replace(s)
}

// Bytes returns b with every secret replaced; b itself is not changed.
func (m *Mask) Bytes(b []byte) []byte {
	if m == nil {
		return b
	}
	return []byte(m.replacer.Replace(string(b)))
}

// Error returns err as it is if neither its text nor that of an error inside holds a secret. Otherwise
// it returns an error with the masked text. errors.Is and errors.As still see what is inside, for
// deciding only: whatever they hand out is not masked. Nothing unwraps to it, so that a text walked
// down to its causes, as Temporal's failures are, stays masked.
func (m *Mask) Error(err error) error {
	if m == nil || !m.leaks(err) {
		return err
	}
	return &maskedError{text: m.String(err.Error()), err: err}
}

func (m *Mask) leaks(err error) bool {
	if err == nil {
		return false
	}
	if text := err.Error(); m.String(text) != text {
		return true
	}
	switch x := err.(type) { //nolint:errorlint // every level is looked at on its own
	case interface{ Unwrap() error }:
		return m.leaks(x.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(x.Unwrap(), m.leaks)
	}
	return false
}

type maskedError struct {
	text string
	err  error
}

func (e *maskedError) Error() string        { return e.text }
func (e *maskedError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *maskedError) As(target any) bool   { return errors.As(e.err, target) }

// GoString keeps %#v from printing what is inside.
func (e *maskedError) GoString() string { return e.text }
