package worker

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Problem is one thing that is wrong with a configuration, with its place in the file.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`   // from 1; 0 when the file as a whole is meant
	Column  int    `json:"column,omitempty"` // from 1, in characters
	Message string `json:"message"`          // what is wrong and what to do
	Excerpt string `json:"excerpt,omitempty"`
}

// String returns "file:line:column: message" and, below it, the line with a mark.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	if p.Excerpt != "" {
		b.WriteString("\n" + p.Excerpt)
	}
	return b.String()
}

// ConfigError is every problem of a configuration, in the order of the file.
type ConfigError struct{ Problems []Problem }

// shownProblems bounds what Error prints: a file that is something else entirely has thousands.
const shownProblems = 50

// Error lists the problems, each with an excerpt of its line.
func (e *ConfigError) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i == shownProblems {
			fmt.Fprintf(&b, "\nand %d more problems", len(e.Problems)-i)
			break
		}
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(p.String())
	}
	return b.String()
}

func sortProblems(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(ps)
}

// A position is a place in the file; the zero position is the file as a whole.
type position struct{ line, column int }

const maxExcerpt = 100

// secretKey finds, in a line of YAML, a key under which a secret may stand.
var secretKey = regexp.MustCompile(`(?i)[\w.-]*(key|seal|token|secret|passw|authorization|credential|cookie)[\w.-]*["']?\s*:\s*`)

// plainReference is a value that names where a secret is.
var plainReference = regexp.MustCompile(`^["']?(env|file):[\w./-]+["']?\s*([,}]|$)`)

// excerpt returns a line of the file with a mark under the column. Whatever follows a key that may name a
// secret is left out: somebody may have written the secret itself there, and an excerpt goes to logs.
func excerpt(lines []string, at position) string {
	if at.line < 1 || at.line > len(lines) {
		return ""
	}
	line := strings.TrimRight(lines[at.line-1], "\r\n")
	for _, m := range secretKey.FindAllStringIndex(line, -1) {
		if m[1] < len(line) && !plainReference.MatchString(line[m[1]:]) {
			line = line[:m[1]] + "..."
			break
		}
	}
	line = strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, line)
	runes := []rune(line)
	from := 0
	if at.column > maxExcerpt {
		from = min(at.column-maxExcerpt/2, len(runes))
	}
	to := min(len(runes), from+maxExcerpt)
	mark := strings.Repeat(" ", max(0, min(at.column-1-from, to-from)))
	return fmt.Sprintf("%5d | %s\n      | %s^", at.line, string(runes[from:to]), mark)
}
