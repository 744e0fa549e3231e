package worker

import "unicode"

// A cursor walks through the lines of the file.
type cursor struct {
	lines [][]rune
	at    position
}

// rune returns what is under the cursor, a line end at the end of a line, and 0 at the end of the file.
func (c *cursor) rune() rune {
	switch line, column := c.at.line-1, c.at.column-1; {
	case line >= len(c.lines):
		return 0
	case column >= len(c.lines[line]):
		return '\n'
	default:
		return c.lines[line][column]
	}
}

func (c *cursor) step() {
	if c.rune() == '\n' {
		c.at = position{c.at.line + 1, 1}
		return
	}
	c.at.column++
}

func (c *cursor) skipSpace() {
	for unicode.IsSpace(c.rune()) {
		c.step()
	}
}

// inside returns where in the file a place of the text at path is; line and column count from 1. YAML indents,
// folds, quotes and escapes a text, so it is followed through the file; where that cannot be done, its beginning
// is returned.
func (d *decoder) inside(path string, line, column int) position {
	text := d.texts[path]
	begin, ok := d.at[path]
	if !ok || begin.line < 1 || begin.line > len(d.lines) {
		return begin
	}
	c := &cursor{at: begin}
	for _, l := range d.lines {
		c.lines = append(c.lines, []rune(l))
	}
	quote := c.rune()
	switch quote {
	case '\'', '"':
		c.step()
	case '|', '>':
		c.at = position{begin.line + 1, 1}
	}
	wanted := offset(text, line, column)
	for i, r := range []rune(text) {
		if unicode.IsSpace(r) {
			continue
		}
		c.skipSpace()
		if i >= wanted {
			return c.at
		}
		if quote == '"' && c.rune() == '\\' || quote == '\'' && r == '\'' {
			c.step()
		}
		if c.rune() != r {
			return begin
		}
		c.step()
	}
	return c.at
}

// offset returns how many runes of text are before a line and column.
func offset(text string, line, column int) int {
	n := 0
	for _, r := range text {
		if line <= 1 {
			break
		}
		if r == '\n' {
			line--
		}
		n++
	}
	return n + column - 1
}
