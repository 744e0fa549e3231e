package starter

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-run/holdfast/agent"
)

// readMessage takes the text from an argument, a file or, for "-", from stdin. Without any of them it is
// stdin too, unless that is a terminal, where somebody would wait for nothing.
func (a *App) readMessage(args []string, file string) (string, error) {
	if len(args) > 0 && file != "" {
		return "", usageError("the message is given twice: as an argument and by --file")
	}
	var text string
	var err error
	switch {
	case file != "" && file != "-":
		text, err = readBounded(func() (io.ReadCloser, error) { return os.Open(file) })
	case len(args) > 0 && args[0] != "-":
		text = args[0]
	case len(args) == 0 && file == "" && a.inIsTerminal():
		return "", withHint(usageError("no message"), "give it as an argument, with --file FILE, or on stdin")
	default:
		text, err = readBounded(func() (io.ReadCloser, error) { return io.NopCloser(a.In), nil })
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("the message: %w", err)
	case strings.TrimSpace(text) == "":
		return "", usageError("the message is empty")
	case len(text) > agent.MaxMessage:
		return "", usageError("the message is longer than %d bytes; put long material where a tool of the agent can read it", agent.MaxMessage)
	case !utf8.ValidString(text):
		return "", usageError("the message is not UTF-8")
	}
	return text, nil
}

func readBounded(open func() (io.ReadCloser, error)) (string, error) {
	r, err := open()
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	b, err := io.ReadAll(io.LimitReader(r, agent.MaxMessage+1))
	return string(b), err
}

func (a *App) inIsTerminal() bool {
	f, ok := a.In.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// alphabet has no letters that are taken for others, and no vowels to make words of.
const alphabet = "bcdfghjkmnpqrstvwxz23456789"

// newSessionID makes a short id that a person can read and type: the agent's name and six random characters.
func newSessionID(name string) string {
	b := make([]byte, 6)
	_, _ = rand.Read(b) // never fails
	return sessionPrefix(name) + "-" + letters(b)
}

// sessionFor derives the id of the session that a message with this id starts, so that the same command
// again finds the same session.
func sessionFor(name, message string) string {
	sum := agent.DigestOf([]byte(name + "\x00" + message))
	return sessionPrefix(name) + "-" + string(sum[:12])
}

func sessionPrefix(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '-'
	}, name)
	clean = strings.Trim(clean[:min(len(clean), 40)], "-_")
	if clean == "" {
		return "session"
	}
	return clean
}

func letters(b []byte) string {
	out := make([]byte, len(b))
	for i, c := range b {
		out[i] = alphabet[int(c)%len(alphabet)]
	}
	return string(out)
}

func newMessageID() string { return "m-" + strings.ToLower(rand.Text()) }

var errSessionID = errors.New("want a letter or digit, then at most 63 letters, digits, underscores or hyphens")

func checkSessionID(id string) error {
	if !agent.ValidSessionID(id) {
		return usageError("session id %q: %w", line(id, 80), errSessionID)
	}
	return nil
}

// checkMessageID applies the session's own rule, so that a bad id fails before anything is started.
func checkMessageID(id string) error {
	if id == "" || len(id) > agent.MaxID || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return usageError("message id %q: want 1 to %d printable ASCII characters without spaces", line(id, 80), agent.MaxID)
	}
	return nil
}
