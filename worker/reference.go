package worker

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/holdfast-run/holdfast/internal/secret"
)

// A Value is text of the configuration that may come from elsewhere. It prints as it stands in the file,
// never as what it refers to.
type Value struct {
	written  string
	resolved string
	secret   bool
}

// Reveal returns what the value refers to. Keep it out of logs, errors and records.
func (v Value) Reveal() string { return v.resolved }

// String returns the value as the file has it, such as "env:TOKEN".
func (v Value) String() string { return v.written }

// GoString does the same for the verb %#v.
func (v Value) GoString() string { return fmt.Sprintf("%q", v.written) }

// MarshalText does the same for JSON.
func (v Value) MarshalText() ([]byte, error) { return []byte(v.written), nil }

// Secret says whether the value comes from a reference.
func (v Value) Secret() bool { return v.secret }

const (
	maxSecretFile = 64 << 10
	maxTextFile   = 1 << 20
)

// references resolves env: and file: references and remembers what it handed out, so that all of it can
// be masked, and which files it read, so that a changed one is noticed.
type references struct {
	dir    string // relative files count from here
	lookup func(string) (string, bool)
	// only, when set, names the paths whose references are resolved; the others stay empty.
	only    func(path string) bool
	secrets []string
	files   []string
}

var (
	wholeReference = regexp.MustCompile(`^(env|file):(.*)$`)
	innerReference = regexp.MustCompile(`\$\{(env|file):([^}]*)\}`)
	envName        = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

const referenceHint = `use env:NAME for an environment variable or file:/path for a file`

// keyInto reads a value that must be a reference: a literal key in the file would be copied with it.
func (d *decoder) keyInto(to *Value) func(value) {
	return func(v value) {
		s, ok := d.text(v)
		if !ok {
			return
		}
		m := wholeReference.FindStringSubmatch(s)
		if m == nil {
			d.fail(v.path, "%s holds a literal value; %s, so that the secret stays out of this file", v.shown(), referenceHint)
			return
		}
		if got, ok := d.resolve(v, m[1], m[2]); ok {
			*to = Value{written: s, resolved: got, secret: true}
		}
	}
}

// valuesInto reads a mapping of names to values that are references, literals, or text with ${env:NAME}
// and ${file:/path} inside. A name that speaks of a secret must have a reference.
func (d *decoder) valuesInto(to *map[string]Value) func(value) {
	return func(v value) {
		d.entries(v, func(name string, _ position, c value) {
			s, ok := d.text(c)
			if !ok {
				return
			}
			got, ok := d.expand(c, s)
			if !ok {
				return
			}
			if !got.secret && secretName.MatchString(name) {
				d.fail(c.path, "%s looks like a secret and is written out; %s, or ${env:NAME} inside the text", c.shown(), referenceHint)
				return
			}
			if *to == nil {
				*to = map[string]Value{}
			}
			(*to)[name] = got
		})
	}
}

var secretName = regexp.MustCompile(`(?i)(authorization|cookie|token|secret|passw|credential|api[-_]?key|access[-_]?key|private[-_]?key)`)

func (d *decoder) expand(v value, s string) (Value, bool) {
	if m := wholeReference.FindStringSubmatch(s); m != nil {
		got, ok := d.resolve(v, m[1], m[2])
		return Value{written: s, resolved: got, secret: true}, ok
	}
	ok, secret := true, false
	got := innerReference.ReplaceAllStringFunc(s, func(ref string) string {
		m := innerReference.FindStringSubmatch(ref)
		part, found := d.resolve(v, m[1], m[2])
		ok, secret = ok && found, true
		return part
	})
	if ok && secret {
		d.refs.secrets = append(d.refs.secrets, got)
	}
	return Value{written: s, resolved: got, secret: secret}, ok
}

// resolve looks a reference up and reports what is missing by its name.
func (d *decoder) resolve(v value, scheme, name string) (string, bool) {
	if d.refs.only != nil && !d.refs.only(v.path) {
		return "", true
	}
	var got string
	switch {
	case scheme == "env" && !envName.MatchString(name):
		d.fail(v.path, "%s: %q cannot name an environment variable; use letters, digits and underscores", v.shown(), clip(name))
		return "", false
	case scheme == "env":
		s, set := d.refs.lookup(name)
		if !set || s == "" {
			d.fail(v.path, "%s needs the environment variable %s, which is not set; set it before you start (export %s=...)", v.shown(), name, name)
			return "", false
		}
		got = s
	default:
		s, err := d.refs.read(name, maxSecretFile)
		if err == nil && strings.TrimRight(s, "\r\n") == "" {
			err = errors.New("it is empty")
		}
		if err != nil {
			d.fail(v.path, "%s needs the file %q: %v", v.shown(), clip(name), err)
			return "", false
		}
		got = strings.TrimRight(s, "\r\n")
	}
	if strings.ContainsAny(got, "\r\n\x00") {
		d.fail(v.path, "%s refers to a value of several lines or with a zero byte; a secret here is one line", v.shown())
		return "", false
	}
	if scheme == "env" && slices.Contains(publicEnv, name) {
		return got, true
	}
	if err := secret.Check(scheme+":"+name, got); err != nil {
		d.fail(v.path, "%s: %v", v.shown(), err)
		return "", false
	}
	d.refs.secrets = append(d.refs.secrets, got)
	return got, true
}

// publicEnv are variables that a server's process may need and that are no secrets: masking the home
// folder would take it out of every path.
var publicEnv = []string{"HOME", "LANG", "PATH", "TMPDIR", "TZ", "USER"}

// instructionsInto reads text, or a file: reference to it.
func (d *decoder) instructionsInto(to *string) func(value) {
	return func(v value) {
		s, ok := d.text(v)
		if !ok {
			return
		}
		m := wholeReference.FindStringSubmatch(s)
		if m != nil && m[1] == "file" && d.refs.only == nil {
			text, err := d.refs.read(m[2], maxTextFile)
			if err != nil {
				d.fail(v.path, "%s needs the file %q: %v", v.shown(), clip(m[2]), err)
				return
			}
			s = text
		}
		*to = strings.TrimSpace(s)
	}
}

// read returns a file's content, at most limit bytes of it.
func (r *references) read(name string, limit int64) (string, error) {
	if name == "" {
		return "", errors.New("the reference names no file")
	}
	path := strings.TrimPrefix(name, "//")
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	r.files = append(r.files, path)
	return readBounded(path, limit)
}

func readBounded(path string, limit int64) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", plainPathError(err)
	}
	if info.IsDir() {
		return "", errors.New("it is a folder; name a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", plainPathError(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", plainPathError(err)
	}
	if int64(len(b)) > limit {
		return "", fmt.Errorf("it is larger than %d bytes", limit)
	}
	return string(b), nil
}

var errNoFile = errors.New("there is no such file")

// plainPathError leaves the path out: the message around it names it already.
func plainPathError(err error) error {
	var p *os.PathError
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errNoFile
	case errors.Is(err, os.ErrPermission):
		return errors.New("it may not be read; change its permissions")
	case errors.As(err, &p):
		return p.Err
	}
	return err
}
