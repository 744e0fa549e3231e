package secret_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/internal/secret"
)

const value = `s3cr3t/"<é>+ key\`

func TestMaskFindsAValueInEveryFormItTakes(t *testing.T) {
	t.Parallel()
	m := secret.New(value, "another-one")
	inJSON, err := json.Marshal(map[string]string{"k": value})
	if err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(string(inJSON))
	if err != nil {
		t.Fatal(err)
	}
	path := (&url.URL{Path: "/" + value}).String()
	cases := map[string]string{
		"plain":         "Bearer " + value + ".",
		"json":          string(inJSON),
		"json twice":    string(twice),
		"query":         "?k=" + url.QueryEscape(value),
		"query, lower":  "?k=" + strings.ToLower(url.QueryEscape(value)),
		"path":          "/" + url.PathEscape(value) + "/",
		"url path":      path,
		"quoted":        fmt.Sprintf("bad header %q", value),
		"quoted ASCII":  fmt.Sprintf("bad header %+q", value),
		"base64":        base64.StdEncoding.EncodeToString([]byte(value)),
		"base64 url":    base64.URLEncoding.EncodeToString([]byte(value)),
		"base64 no pad": base64.RawStdEncoding.EncodeToString([]byte(value)),
		"other":         "x another-one y",
	}
	for name, in := range cases {
		got := m.String(in)
		if !strings.Contains(got, secret.Placeholder) || strings.Contains(got, "3cr3t") || strings.Contains(got, "nother") {
			t.Errorf("%s: %q became %q", name, in, got)
		}
		if b := m.Bytes([]byte(in)); string(b) != got {
			t.Errorf("%s: Bytes and String differ", name)
		}
	}
}

func TestMaskFindsAValueInsideLongerBase64(t *testing.T) {
	t.Parallel()
	m := secret.New(value)
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		for _, before := range []string{"", "u", "us", "user:", "user1:", "user12:"} {
			for _, after := range []string{"", "a", "ab", "abc"} {
				in := e.EncodeToString([]byte(before + value + after))
				got := m.String(in)
				if !strings.Contains(got, secret.Placeholder) || len(got) > len(in)-len(value)+len(secret.Placeholder) {
					t.Errorf("%q+value+%q: %s became %s", before, after, in, got)
				}
			}
		}
	}
}

func TestMaskLeavesEverythingElse(t *testing.T) {
	t.Parallel()
	m := secret.New(value, "", "short", "  tiny ")
	for _, in := range []string{"", "short and tiny", "s3cr3", "\x00\xff bytes", secret.Placeholder} {
		if got := m.String(in); got != in {
			t.Errorf("%q became %q", in, got)
		}
	}
	var none *secret.Mask
	err := errors.New("x")
	if none.String(value) != value || string(none.Bytes([]byte(value))) != value || none.Error(err) != err { //nolint:errorlint // the very same error is what is asked for
		t.Error("a nil mask masks")
	}
	if secret.New("short") != nil {
		t.Error("a mask of nothing is not nil")
	}
}

func TestMaskTakesTheLongestFirst(t *testing.T) {
	t.Parallel()
	m := secret.New("abcdef", "abcdefghij", "\n trimmed-value \n")
	if got := m.String("abcdefghij abcdef trimmed-value"); got != "[secret] [secret] [secret]" {
		t.Errorf("got %q", got)
	}
}

func TestMaskedErrorTellsNothingButStaysWhatItIs(t *testing.T) {
	t.Parallel()
	m := secret.New(value)
	inner := &fs.PathError{Op: "open", Path: value, Err: io.ErrUnexpectedEOF}
	for name, err := range map[string]error{
		"wrapped":    fmt.Errorf("reading: %w", inner),
		"joined":     errors.Join(errors.New("other"), inner),
		"only below": hiding{inner},
	} {
		got := m.Error(err)
		for _, text := range []string{got.Error(), fmt.Sprintf("%+v %#v %q", got, got, got)} {
			if strings.Contains(text, "s3cr3t") {
				t.Errorf("%s: %s", name, text)
			}
		}
		if errors.Unwrap(got) != nil {
			t.Errorf("%s: unwraps", name)
		}
		var path *fs.PathError
		if !errors.Is(got, io.ErrUnexpectedEOF) || !errors.As(got, &path) {
			t.Errorf("%s: is no longer what it was", name)
		}
	}
	clean := fmt.Errorf("reading: %w", io.EOF)
	if m.Error(clean) != clean || m.Error(nil) != nil { //nolint:errorlint // as above
		t.Error("a clean error was changed")
	}
}

// hiding is an error whose own text does not show what is inside.
type hiding struct{ err error }

func (h hiding) Error() string { return "something went wrong" }
func (h hiding) Unwrap() error { return h.err }

func TestCheckRefusesWhatCannotBeMasked(t *testing.T) {
	t.Parallel()
	for v, ok := range map[string]bool{"": false, "12345": false, " 1234 \n": false, "123456": true} {
		err := secret.Check("env:KEY", v)
		if (err == nil) != ok {
			t.Errorf("%q: %v", v, err)
		}
		if err != nil && (!strings.Contains(err.Error(), "env:KEY") || v != "" && strings.Contains(err.Error(), v)) {
			t.Errorf("%q: %v", v, err)
		}
	}
}

func FuzzMask(f *testing.F) {
	f.Add("secret-value", "before ", " after")
	f.Add(value, "\xff", "\x00")
	f.Fuzz(func(t *testing.T, v, before, after string) {
		m := secret.New(v)
		got := m.String(before + v + after)
		if v = strings.TrimSpace(v); len(v) >= secret.MinLength && !strings.Contains(secret.Placeholder, v) {
			if !strings.Contains(got, secret.Placeholder) {
				t.Errorf("%q is not masked in %q", v, got)
			}
		}
	})
}
