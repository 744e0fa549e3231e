package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// A page is one document.
type page struct {
	name   string // from the root of the repository
	text   string
	blocks []block
}

// A block is what stands between two fences.
type block struct {
	page string
	line int
	info []string // the words after the opening fence
	text string
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

func (b block) is(words ...string) bool {
	return len(b.info) >= len(words) && strings.Join(b.info[:len(words)], " ") == strings.Join(words, " ")
}

// prose is the page without its blocks.
func (p page) prose() string {
	out, fenced := []string{}, false
	for _, line := range strings.Split(p.text, "\n") {
		if strings.HasPrefix(line, "```") {
			fenced, line = !fenced, ""
		}
		if fenced {
			line = ""
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func pages(t *testing.T) []page {
	t.Helper()
	var out []page
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			name, err := filepath.Rel(root, f)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, read(t, filepath.ToSlash(name)))
		}
	}
	if len(out) < 8 {
		t.Fatalf("only %d documents found", len(out))
	}
	return out
}

func read(t *testing.T, name string) page {
	t.Helper()
	p := page{name: name, text: file(t, name)}
	var open *block
	for i, line := range strings.Split(p.text, "\n") {
		info, fence := strings.CutPrefix(line, "```")
		switch {
		case fence && open == nil:
			open = &block{page: name, line: i + 1, info: strings.Fields(info)}
			if len(open.info) == 0 {
				t.Errorf("%s: the block does not say what it is", open)
			}
		case fence:
			p.blocks, open = append(p.blocks, *open), nil
		case open != nil:
			open.text += line + "\n"
		}
	}
	if open != nil {
		t.Fatalf("%s: the block is not closed", open)
	}
	return p
}

func file(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// blocks are the blocks of all documents that begin with the words.
func blocks(t *testing.T, words ...string) []block {
	t.Helper()
	var out []block
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if b.is(words...) {
				out = append(out, b)
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("no block %q anywhere", words)
	}
	return out
}

func TestEveryBlockIsOfAKindThatIsHeld(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			switch strings.Join(b.info[:min(1, len(b.info))], "") {
			case "yaml", "go", "sh", "text":
			default:
				t.Errorf("%s: nothing holds a block of kind %q; see doc.go", b, b.info)
			}
		}
	}
}

func TestCodeIsTheCodeOfAFile(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if !b.is("go") && (!b.is("yaml") || len(b.info) < 2) {
				continue
			}
			if len(b.info) < 2 {
				t.Errorf("%s: Go code without the file that it comes from", b)
			} else if !strings.Contains(dedent(file(t, b.info[1])), dedent(b.text)) {
				t.Errorf("%s is not what %s says", b, b.info[1])
			}
		}
	}
}

// dedent drops what a line is indented by: a piece of a function stands at the margin in a document.
func dedent(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	noSlug  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names that headings get on a web page.
func anchors(p page) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(p.prose(), -1) {
		slug := noSlug.ReplaceAllString(strings.ToLower(m[1]), "")
		out[strings.ReplaceAll(slug, " ", "-")] = true
	}
	return out
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	n := 0
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(p.prose(), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			n++
			to, anchor, _ := strings.Cut(m[1], "#")
			name := p.name
			if to != "" {
				name = filepath.Join(filepath.Dir(p.name), to)
			}
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("%s links to %s, which is not there", p.name, m[1])
			} else if anchor != "" && !anchors(read(t, name))[anchor] {
				t.Errorf("%s links to %s, and there is no such heading", p.name, m[1])
			}
		}
	}
	if n == 0 {
		t.Error("no links found")
	}
}
