package starter

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/holdfast-run/holdfast/approval"
)

type colour string

const (
	red    colour = "31"
	yellow colour = "33"
	dim    colour = "2"
	bold   colour = "1"
)

// paint colours text for a terminal, unless NO_COLOR is set (no-color.org).
func (a *App) paint(w io.Writer, c colour, s string) string {
	if os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !isTerminal(w) {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	return err == nil
}

func (a *App) json() bool { return a.output == "json" }

// printJSON prints one object on a line of its own.
func (a *App) printJSON(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// note says something on stderr that is not part of the result.
func (a *App) note(format string, args ...any) {
	if !a.quiet {
		fmt.Fprintf(a.Err, "%s\n", visibleLines(fmt.Sprintf(format, args...)))
	}
}

// leave says what an interrupted command leaves behind. It is said in spite of --quiet: whoever interrupted a
// command that chose ids itself could not name the session otherwise.
func (a *App) leave(format string, args ...any) {
	fmt.Fprintf(a.Err, "%s\n", visibleLines(fmt.Sprintf(format, args...)))
}

// answer prints what a model said. A terminal obeys control characters, so there they are made visible; a
// file or a pipe gets the bytes as they are.
func (a *App) answer(s string) error {
	if isTerminal(a.Out) {
		s = visibleLines(s)
	}
	if !strings.HasSuffix(s, "\n") {
		s += "\n"
	}
	_, err := io.WriteString(a.Out, s)
	return err
}

// visibleLines makes visible what a terminal would obey or hide, except line ends and tabs.
func visibleLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		cells := strings.Split(strings.TrimSuffix(line, "\r"), "\t")
		for j, cell := range cells {
			cells[j] = approval.Visible(cell)
		}
		lines[i] = strings.Join(cells, "\t")
	}
	return strings.Join(lines, "\n")
}

// line makes text from outside one line of bounded length.
func line(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) > limit {
		s = string([]rune(s)[:limit]) + "…"
	}
	return approval.Visible(s)
}
