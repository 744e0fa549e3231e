package worker

import (
	"strings"
	"testing"
)

// Each condition has the word "wrong" once, which the file is searched for.
func TestAPlaceInsideATextIsFoundHoweverYAMLWritesIt(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]string{
		"plain":              "tool == wrong",
		"plain, folded":      "tool ==\n     wrong",
		"single quotes":      `'tool == ''x'' || wrong'`,
		"double quotes":      `"tool == \"x\" || 'a' == wrong"`,
		"literal":            "|\n     tool == \"x\"\n       || wrong\n",
		"folded":             ">-\n     tool == \"x\"\n     || wrong\n",
		"characters of many": `'tool == "äöü😀" || wrong'`,
	} {
		text := least + "policy:\n  rules:\n  - name: a\n    then: ask\n    when: " + written + "\n"
		_, err := parseWith(nil, t.TempDir(), text)
		problems := problemsOf(t, err)
		lines := strings.Split(text, "\n")
		p := problems[0]
		if p.Line < 1 || p.Line > len(lines) {
			t.Errorf("%s: line %d", name, p.Line)
			continue
		}
		line := []rune(lines[p.Line-1])
		if rest := string(line[min(p.Column-1, len(line)):]); !strings.HasPrefix(rest, "wrong") {
			t.Errorf("%s: line %d, column %d is at %q: %s", name, p.Line, p.Column, rest, p.Message)
		}
	}
}

func TestAPlaceInsideATextThatCannotBeFollowedIsItsBeginning(t *testing.T) {
	t.Parallel()
	_, err := parseWith(nil, t.TempDir(), least+"policy: {rules: [{name: a, then: ask, when: \"tool == \\\"\\u00e4\\\" || wrong\"}]}\n")
	p := problemsOf(t, err)[0]
	if line := strings.Split(p.Excerpt, "\n"); p.Line != 6 || !strings.HasSuffix(line[0][:strings.IndexByte(line[1], '^')], "when: ") {
		t.Errorf("at %d:%d\n%s", p.Line, p.Column, p.Excerpt)
	}
}

func FuzzInside(f *testing.F) {
	f.Add("a: 'b c'\n", "b c", 1, 3, 1, 4)
	f.Add("a: |\n  b\n  c", "b\nc", 2, 1, 1, 4)
	f.Add("", "", 0, 0, 0, 0)
	f.Fuzz(func(t *testing.T, file, text string, line, column, atLine, atColumn int) {
		d := &decoder{lines: strings.Split(file, "\n"), at: map[string]position{"p": {atLine, atColumn}}, texts: map[string]string{"p": text}}
		if atColumn < 1 {
			t.Skip() // tokens count from 1
		}
		got := d.inside("p", line, column)
		if got.line < 0 && atLine >= 0 {
			t.Errorf("line %d", got.line)
		}
	})
}
