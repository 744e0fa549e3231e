package worker

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// text returns a scalar that is text; ok is false after a problem and for an empty value.
func (d *decoder) text(v value) (s string, ok bool) {
	if !d.enter(&v) {
		return "", false
	}
	switch n := v.node.(type) {
	case *ast.StringNode:
		s = n.Value
	case *ast.LiteralNode:
		s = n.Value.Value
	case *ast.NullNode:
		return "", false
	default:
		want := "text"
		if _, scalar := n.(ast.ScalarNode); scalar {
			want = "text; put it in quotes"
		}
		d.wrong(v, want)
		return "", false
	}
	if strings.ContainsRune(s, 0) {
		d.fail(v.path, "%s holds a zero byte; remove it", v.shown())
		return "", false
	}
	d.texts[v.path] = s
	return s, true
}

func (d *decoder) textInto(to *string) func(value) {
	return func(v value) {
		if s, ok := d.text(v); ok {
			*to = s
		}
	}
}

func (d *decoder) textsInto(to *[]string) func(value) {
	return func(v value) {
		d.list(v, func(_ int, v value) {
			if s, ok := d.text(v); ok {
				*to = append(*to, s)
			}
		})
	}
}

// namedTextsInto reads a mapping of names to text.
func (d *decoder) namedTextsInto(to *map[string]string) func(value) {
	return func(v value) {
		*to = map[string]string{}
		d.entries(v, func(name string, _ position, v value) {
			if s, ok := d.text(v); ok {
				(*to)[name] = s
			}
		})
	}
}

// A choice is one of the words that a field may have, and what it means where the word does not say it.
type choice[T ~string] struct {
	word  T
	means string
}

// choiceInto reads one of a few words.
func choiceInto[T ~string](d *decoder, to *T, choices []choice[T]) func(value) {
	return func(v value) {
		s, ok := d.text(v)
		if !ok {
			return
		}
		var want []string
		for _, c := range choices {
			if string(c.word) == s {
				*to = c.word
				return
			}
			one := string(c.word)
			if c.means != "" {
				one += " (" + c.means + ")"
			}
			want = append(want, one)
		}
		last := len(want) - 1
		d.fail(v.path, "%s is %q; want %s or %s", v.shown(), clip(s), strings.Join(want[:last], ", "), want[last])
	}
}

func (d *decoder) boolInto(to *bool) func(value) {
	return func(v value) {
		switch n := v.node.(type) {
		case *ast.BoolNode:
			*to = n.Value
		case *ast.NullNode:
		default:
			d.wrong(v, "true or false")
		}
	}
}

var wholeNumber = regexp.MustCompile(`^(0|[1-9][0-9]*)$`)

// countInto reads a whole number from 0 to most.
func (d *decoder) countInto(to *int64, most int64) func(value) {
	return func(v value) {
		if _, null := v.node.(*ast.NullNode); null {
			return
		}
		s, ok := numeral(v.node)
		n, err := strconv.ParseInt(s, 10, 64)
		if !ok || !wholeNumber.MatchString(s) || err != nil || n > most {
			d.wrong(v, "a whole number from 0 to "+strconv.FormatInt(most, 10))
			return
		}
		*to = n
	}
}

func (d *decoder) intInto(to *int) func(value) {
	return func(v value) {
		n := int64(*to)
		d.countInto(&n, math.MaxInt32)(v)
		*to = int(n)
	}
}

// decimalInto reads a number from 0 on, such as a price.
func (d *decoder) decimalInto(to *float64) func(value) {
	return func(v value) {
		if _, null := v.node.(*ast.NullNode); null {
			return
		}
		s, ok := numeral(v.node)
		f, err := strconv.ParseFloat(s, 64)
		if !ok || err != nil || f < 0 {
			d.wrong(v, "a decimal number from 0 on, such as 1.25")
			return
		}
		*to = f
	}
}

// microsInto reads an amount of money exactly, in millionths.
func (d *decoder) microsInto(to *int64) func(value) {
	return func(v value) {
		if _, null := v.node.(*ast.NullNode); null {
			return
		}
		s, ok := numeral(v.node)
		r, exact := new(big.Rat), false
		if ok && len(s) < 32 && !strings.ContainsAny(s, "eE") {
			r, exact = r.SetString(s)
		}
		if exact {
			r.Mul(r, big.NewRat(1_000_000, 1))
			if exact = r.IsInt() && r.Sign() >= 0 && r.Num().IsInt64(); exact {
				*to = r.Num().Int64()
				return
			}
		}
		d.wrong(v, "an amount from 0 on with at most six decimals, such as 0.50")
	}
}

const maxDuration = 365 * 24 * time.Hour

func (d *decoder) durationInto(to *time.Duration) func(value) {
	return func(v value) {
		switch v.node.(type) {
		case *ast.IntegerNode, *ast.FloatNode:
			d.wrong(v, `a duration with its unit, such as "30s" or "24h"`)
			return
		}
		s, ok := d.text(v)
		if !ok {
			return
		}
		t, err := time.ParseDuration(s)
		if err != nil || t < 0 || t > maxDuration {
			d.fail(v.path, "%s is %q; want a duration such as \"30s\", \"5m\" or \"24h\", at most a year", v.shown(), clip(s))
			return
		}
		*to = t
	}
}

var sizeForm = regexp.MustCompile(`^([0-9]{1,12})\s?(B|KB|KiB|MB|MiB|GB|GiB)$`)

func (d *decoder) sizeInto(to *int64) func(value) {
	units := map[string]int64{
		"B": 1, "KB": 1e3, "KiB": 1 << 10, "MB": 1e6, "MiB": 1 << 20, "GB": 1e9, "GiB": 1 << 30,
	}
	return func(v value) {
		switch v.node.(type) {
		case *ast.IntegerNode, *ast.FloatNode:
			d.wrong(v, `a size with its unit, such as "48KiB"`)
			return
		}
		s, ok := d.text(v)
		if !ok {
			return
		}
		m := sizeForm.FindStringSubmatch(s)
		if m != nil {
			n, err := strconv.ParseInt(m[1], 10, 64)
			if unit := units[m[2]]; err == nil && n <= (1<<40)/unit {
				*to = n * unit
				return
			}
		}
		d.fail(v.path, "%s is %q; want a size such as \"48KiB\" or \"1MiB\", at most 1024GiB", v.shown(), clip(s))
	}
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// numeral returns the digits of a number exactly as the file has them. go-yaml takes a number that no
// float64 can hold for text.
func numeral(n ast.Node) (string, bool) {
	switch m := n.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		return n.GetToken().Value, true
	case *ast.StringNode:
		plain := m.Token != nil && m.Token.Type == token.StringType
		return m.Value, plain && jsonNumber.MatchString(m.Value)
	}
	return "", false
}

// jsonInto writes the value as JSON, numbers as they stand in the file.
func (d *decoder) jsonInto(to *json.RawMessage) func(value) {
	return func(v value) {
		before := len(d.problems)
		var b bytes.Buffer
		d.json(&b, v)
		if len(d.problems) == before {
			*to = b.Bytes()
		}
	}
}

func (d *decoder) json(b *bytes.Buffer, v value) {
	if s, ok := numeral(v.node); ok {
		if !jsonNumber.MatchString(s) {
			d.fail(v.path, "%s is %s, which JSON cannot write; use plain decimal digits", v.shown(), clip(s))
		}
		b.WriteString(s)
		return
	}
	switch n := v.node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		b.WriteByte('{')
		first := true
		d.entries(v, func(key string, _ position, c value) {
			if !first {
				b.WriteByte(',')
			}
			first = false
			writeText(b, key)
			b.WriteByte(':')
			d.json(b, c)
		})
		b.WriteByte('}')
	case *ast.SequenceNode:
		b.WriteByte('[')
		d.list(v, func(i int, c value) {
			if i > 0 {
				b.WriteByte(',')
			}
			d.json(b, c)
		})
		b.WriteByte(']')
	case *ast.NullNode:
		b.WriteString("null")
	case *ast.BoolNode:
		b.WriteString(strconv.FormatBool(n.Value))
	case *ast.InfinityNode, *ast.NanNode:
		d.fail(v.path, "%s is no number that JSON knows; remove it", v.shown())
	default:
		if s, ok := d.text(v); ok {
			writeText(b, s)
		}
	}
}

func writeText(b *bytes.Buffer, s string) {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always has a JSON form
	b.Truncate(b.Len() - 1)
}

// clip bounds foreign text in a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:60]) + "..."
	}
	return s
}
