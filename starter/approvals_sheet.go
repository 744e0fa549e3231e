package starter

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"github.com/holdfast-run/holdfast/approval"
)

// A sheet shows foreign text so that nothing in it can pass for what the sheet itself says:
//
//   - a value begins after a bar, with its label, or none, before it; it is made visible and broken by the sheet,
//     inside the width of the terminal, so that none of it reaches the columns before the bar; rows that go on with
//     the value above have a colon in the bar's place, so that none of it looks like the next value;
//   - the sheet's own remarks inside a value stand in ⟨⟩, which in foreign text is written out.
type sheet struct {
	w     io.Writer
	width int
	label func(string) string // paints it
	full  bool                // long values whole
	// hidden counts the bytes that were cut.
	hidden int
}

const (
	labelWidth = 15
	rowWidth   = 100 // where there is no terminal
	minWidth   = 8
)

// How much of a value is shown at first: its beginning and its end, in bytes. An end that nobody sees would be
// the place to hide something.
const (
	shownHead = 400
	shownTail = 160
)

// maxMembers is how many arguments are shown at first.
const maxMembers = 40

func (a *App) sheet(w io.Writer, full bool) *sheet {
	return &sheet{w: w, width: columns(w), full: full, label: func(s string) string { return a.paint(w, bold, s) }}
}

func columns(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok {
		return rowWidth
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 {
		return rowWidth
	}
	return int(size.Col)
}

// row shows a label and what belongs to it; nothing without a value and a remark, which is ours.
func (s *sheet) row(label, value, remark string) {
	if value == "" && remark == "" {
		return
	}
	text := s.cut(value)
	if remark != "" {
		text = strings.TrimPrefix(text+" ⟨"+approval.Visible(remark)+"⟩", " ")
	}
	s.rows(label, text)
}

// say shows a label and words of ours; foreign text in them has been made visible.
func (s *sheet) say(label, format string, args ...any) { s.rows(label, fmt.Sprintf(format, args...)) }

// rows breaks what is visible already.
func (s *sheet) rows(label, text string) {
	room := max(s.width-labelWidth-5, minWidth)
	bar := "|"
	for _, part := range broken(text, room) {
		fmt.Fprintf(s.w, "%s %s %s\n", s.label(fmt.Sprintf("  %-*s", labelWidth, label)), bar, part)
		label, bar = "", ":"
	}
}

// cut makes a value visible, of a long one its beginning and its end.
func (s *sheet) cut(value string) string {
	if s.full || len(value) <= shownHead+shownTail+64 {
		return approval.Visible(value)
	}
	head, tail := shownHead, len(value)-shownTail
	for head > 0 && !utf8.RuneStart(value[head]) {
		head--
	}
	for tail < len(value) && !utf8.RuneStart(value[tail]) {
		tail++
	}
	s.hidden += tail - head
	return fmt.Sprintf("%s ⟨cut: %d of %d bytes are not shown here; --full shows them⟩ %s",
		approval.Visible(value[:head]), tail-head, len(value), approval.Visible(value[tail:]))
}

// broken breaks a text into parts of at most so many columns, after a space if one is near. A character beyond
// ASCII counts as two: no terminal gives it more.
func broken(text string, room int) []string {
	var parts []string
	for {
		used, end, space := 0, len(text), 0
		for i, r := range text {
			w := 1
			if r >= utf8.RuneSelf {
				w = 2
			}
			if used += w; used > room {
				end = i
				break
			}
			if r == ' ' && used > room*2/3 {
				space = i + 1
			}
		}
		switch {
		case end == len(text):
			return append(parts, text)
		case space > 0:
			end = space
		}
		parts = append(parts, text[:end])
		text = text[end:]
	}
}
