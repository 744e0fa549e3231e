package worker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// A decoder walks the syntax tree that go-yaml parsed. Its own strict decoder stops at the first problem,
// names Go types and turns numbers into float64; an operator wants all problems of a file at once, in
// the file's words, and a JSON schema must keep its digits.
type decoder struct {
	file     string
	lines    []string
	problems []Problem
	at       map[string]position // of every value, by its path
	texts    map[string]string   // values that are text, by their path
	refs     *references
	noPolicy bool // a part of the policy could not be read
}

// A value is a node of the tree and the path that leads to it: "models/main/key".
type value struct {
	node ast.Node
	path string
}

func (v value) child(name string, n ast.Node) value {
	if v.path == "" {
		return value{n, name}
	}
	return value{n, v.path + "/" + name}
}

// shown returns the path as an operator would say it.
func (v value) shown() string { return strings.ReplaceAll(v.path, "/", ".") }

// maxDepth bounds the nesting of the file; a JSON schema inside it is the deepest that is meant.
const maxDepth = 64

// maxTokens bounds the words and marks of the file; some six thousand lines have that many.
const maxTokens = 20_000

// parseTree returns the file's only document, or nothing after a problem. go-yaml has panicked on odd
// input before (goccy/go-yaml issues 540, 718); whoever edits a file must not bring a worker down.
func (d *decoder) parseTree(b []byte) (root value, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			d.add(position{}, "the file is not YAML that can be read (%v); look for unusual characters or indentation", r)
			root, ok = value{}, false
		}
	}()
	tokens := lexer.Tokenize(string(b))
	if at, why := tooMuch(tokens); why != "" {
		d.add(at, "%s", why)
		return value{}, false
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		var e yaml.Error
		if errors.As(err, &e) {
			d.add(tokenPosition(e.GetToken()), "not YAML: %s", e.GetMessage())
		} else {
			d.add(position{}, "not YAML: %v", err)
		}
		return value{}, false
	}
	var docs []ast.Node
	for _, doc := range f.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			docs = append(docs, doc.Body)
		}
	}
	switch len(docs) {
	case 0:
		d.add(position{}, "the file is empty; it needs at least models and agents")
		return value{}, false
	case 1:
		return value{node: docs[0]}, true
	}
	d.add(nodePosition(docs[1]), "a second document begins here; put everything into one and remove the line \"---\"")
	return value{}, false
}

// tooMuch looks for what the parser would take minutes and gigabytes for: its time grows with the square of
// a file's tokens and of their nesting, that of the lexer does not.
func tooMuch(tokens token.Tokens) (position, string) {
	depth := 0
	for i, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		}
		if depth > maxDepth {
			return tokenPosition(t), fmt.Sprintf("nested deeper than %d; flatten it", maxDepth)
		}
		if i >= maxTokens {
			return tokenPosition(t), fmt.Sprintf("the file has more than %d words and marks up to here; make it smaller", maxTokens)
		}
	}
	return position{}, ""
}

func (d *decoder) add(at position, format string, args ...any) {
	d.problems = append(d.problems, Problem{
		File: d.file, Line: at.line, Column: at.column,
		Message: fmt.Sprintf(format, args...), Excerpt: excerpt(d.lines, at),
	})
}

// fail reports a problem of the value at path or, where that was left out, of what should hold it.
func (d *decoder) fail(path, format string, args ...any) {
	for {
		if at, ok := d.at[path]; ok {
			d.add(at, format, args...)
			return
		}
		i := strings.LastIndexByte(path, '/')
		if i < 0 {
			d.add(position{}, format, args...)
			return
		}
		path = path[:i]
	}
}

// entries calls f for each entry of a mapping, and reports what is no mapping, keys that are no text
// and keys that are there twice. Nothing is reported for a value that is left empty.
func (d *decoder) entries(v value, f func(key string, keyAt position, v value)) {
	if !d.enter(&v) {
		return
	}
	var list []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		list = n.Values
	case *ast.MappingValueNode:
		list = []*ast.MappingValueNode{n}
	case *ast.NullNode:
		return
	default:
		d.wrong(v, "a mapping (\"name: value\" lines)")
		return
	}
	seen := map[string]position{}
	for _, e := range list {
		at := nodePosition(e.Key)
		key, ok := e.Key.(*ast.StringNode)
		if !ok {
			d.add(at, "a key must be text; put it in quotes (merge keys and anchors are not supported)")
			continue
		}
		if first, twice := seen[key.Value]; twice {
			d.add(at, "%q is given twice, first in line %d; remove one of them", key.Value, first.line)
			continue
		}
		seen[key.Value] = at
		c := v.child(key.Value, e.Value)
		d.at[c.path] = at
		if _, null := e.Value.(*ast.NullNode); !null {
			d.at[c.path] = nodePosition(e.Value)
		}
		f(key.Value, at, c)
	}
}

// fields maps the names that a mapping may have to what reads them.
type fields map[string]func(value)

func (d *decoder) object(v value, known fields) {
	d.entries(v, func(key string, at position, c value) {
		read, ok := known[key]
		if !ok {
			names := slices.Sorted(maps.Keys(known))
			d.add(at, "unknown field %q%s; %sknown here: %s", key, in(v), meant(key, names), strings.Join(names, ", "))
			return
		}
		read(c)
	})
}

func in(v value) string {
	if v.path == "" {
		return ""
	}
	return " in " + v.shown()
}

// list calls f for each element of a sequence.
func (d *decoder) list(v value, f func(i int, v value)) {
	if !d.enter(&v) {
		return
	}
	switch n := v.node.(type) {
	case *ast.SequenceNode:
		for i, e := range n.Values {
			c := v.child(fmt.Sprint(i), e)
			d.at[c.path] = nodePosition(e)
			f(i, c)
		}
	case *ast.NullNode:
	default:
		d.wrong(v, "a list (\"- value\" lines or [a, b])")
	}
}

// enter guards the way into v: no aliases, tags or nesting without end. An alias can make a small file
// unfold into gigabytes.
func (d *decoder) enter(v *value) bool {
	if strings.Count(v.path, "/") > maxDepth {
		d.fail(v.path, "nested deeper than %d; flatten it", maxDepth)
		return false
	}
	switch v.node.(type) {
	case *ast.AliasNode, *ast.AnchorNode, *ast.TagNode, *ast.MergeKeyNode:
		d.fail(v.path, "anchors, aliases and tags are not supported; write the value out")
		return false
	case nil:
		d.fail(v.path, "the value is missing")
		return false
	}
	return true
}

func (d *decoder) wrong(v value, want string) {
	name := v.shown()
	if name == "" {
		name = "the file"
	}
	d.fail(v.path, "%s is %s; want %s", name, kind(v.node), want)
}

func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.BoolNode:
		return "true or false"
	case *ast.NullNode:
		return "empty"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	}
	return "something else"
}

func nodePosition(n ast.Node) position {
	switch m := n.(type) {
	case nil:
		return position{}
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return nodePosition(m.Values[0].Key)
		}
	case *ast.MappingValueNode:
		return nodePosition(m.Key)
	}
	return tokenPosition(n.GetToken())
}

func tokenPosition(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{t.Position.Line, max(1, t.Position.Column)}
}

// meant suggests the known name that is nearest to a mistyped one.
func meant(got string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if n := distance(strings.ToLower(got), k); n < least && n < len(k) {
			best, least = k, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q? ", best)
}

// distance is the Levenshtein distance of two short names.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
