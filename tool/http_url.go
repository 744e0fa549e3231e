package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const maxURL = 8 << 10 // bytes of a whole URL; many servers refuse longer ones

// A target makes URLs of arguments: a fixed scheme and host, and pieces of path and query.
type target struct {
	base  *url.URL  // scheme and host only
	path  [][]piece // one for each segment
	query []pair    // of the template
	extra []string  // arguments sent as query values of their own name
}

// A piece is literal text, already escaped, or the argument that stands there.
type piece struct{ literal, arg string }

type pair struct {
	key   string // escaped, with its "="
	value []piece
}

func parseTarget(template string, extra []string) (*target, error) {
	whole, err := pieces(template)
	if err != nil {
		return nil, err
	}
	// With letters in the place of arguments the template has to be a URL, and nothing but a URL.
	plain := ""
	for _, p := range whole {
		plain += p.literal
		if p.arg != "" {
			plain += "x"
		}
	}
	u, err := url.Parse(plain)
	if err != nil {
		return nil, fmt.Errorf("the URL cannot be parsed: %w", errors.Unwrap(err))
	}
	prefix := u.Scheme + "://" + u.Host
	rest, ok := strings.CutPrefix(template, prefix)
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Opaque != "":
		return nil, fmt.Errorf("%.80q is not an http or https URL with a host", template)
	case u.User != nil:
		return nil, errors.New("the URL holds a user; send an Authorization header by reference instead")
	case strings.Contains(template, "#"):
		return nil, errors.New("the URL holds a fragment, which is never sent; take it out")
	case !ok || rest != "" && rest[0] != '/' && rest[0] != '?':
		return nil, errors.New("the URL has an argument in its scheme, host or port; write them out, in lower case")
	}
	t := &target{base: &url.URL{Scheme: u.Scheme, Host: u.Host}, extra: extra}
	path, query, _ := strings.Cut(rest, "?")
	return t, t.parse(path, query)
}

func (t *target) parse(path, query string) error {
	for _, segment := range strings.Split(strings.TrimPrefix(path, "/"), "/") {
		p, err := pieces(segment)
		if err != nil {
			return err
		}
		t.path = append(t.path, p)
	}
	if query == "" {
		return nil
	}
	for _, kv := range strings.Split(query, "&") {
		key, value, valued := strings.Cut(kv, "=")
		if strings.ContainsAny(key, "{}") {
			return errors.New("the URL has an argument as the name of a query value; write the name out")
		}
		p, err := pieces(value)
		if err != nil {
			return err
		}
		if valued {
			key += "="
		}
		t.query = append(t.query, pair{key: key, value: p})
	}
	return nil
}

// pieces splits text at its {arg} placeholders.
func pieces(text string) ([]piece, error) {
	var out []piece
	for text != "" {
		literal, rest, found := strings.Cut(text, "{")
		if strings.Contains(literal, "}") {
			return nil, errors.New("the URL holds a } without a {")
		}
		if literal != "" {
			out = append(out, piece{literal: literal})
		}
		if !found {
			break
		}
		arg, rest, closed := strings.Cut(rest, "}")
		if !closed || arg == "" || strings.ContainsAny(arg, "{/?#&=") {
			return nil, errors.New("the URL holds a { that begins no {argument}")
		}
		out = append(out, piece{arg: arg})
		text = rest
	}
	return out, nil
}

func (t *target) pathNames() []string {
	var out []string
	for _, segment := range t.path {
		for _, p := range segment {
			if p.arg != "" {
				out = append(out, p.arg)
			}
		}
	}
	return out
}

// names returns the arguments that the URL takes.
func (t *target) names() []string { return append(t.templateNames(), t.extra...) }

// templateNames returns those that the template itself names.
func (t *target) templateNames() []string {
	out := t.pathNames()
	for _, kv := range t.query {
		for _, p := range kv.value {
			if p.arg != "" {
				out = append(out, p.arg)
			}
		}
	}
	return out
}

// url makes the URL of one call. Errors are for the model.
func (t *target) url(args map[string]json.RawMessage) (*url.URL, error) {
	var path strings.Builder
	for _, segment := range t.path {
		s, err := pathSegment(segment, args)
		if err != nil {
			return nil, err
		}
		path.WriteString("/" + s)
	}
	query, err := t.queryOf(args)
	if err != nil {
		return nil, err
	}
	raw := t.base.String() + path.String()
	if query != "" {
		raw += "?" + query
	}
	if len(raw) > maxURL {
		return nil, fmt.Errorf("the arguments make a URL of %d bytes, at most %d are sent; use shorter ones", len(raw), maxURL)
	}
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != t.base.Scheme || u.Host != t.base.Host || u.User != nil {
		return nil, errors.New("the arguments make no URL of the tool's host; use plainer ones")
	}
	return u, nil
}

func pathSegment(segment []piece, args map[string]json.RawMessage) (string, error) {
	var escaped, plain string
	for _, p := range segment {
		if p.arg == "" {
			escaped, plain = escaped+p.literal, plain+p.literal
			continue
		}
		v, ok, err := scalar(p.arg, args[p.arg])
		if err != nil {
			return "", err
		}
		if !ok || v == "" {
			return "", fmt.Errorf("the argument %q stands in a path and cannot be empty", p.arg)
		}
		if strings.ContainsFunc(v, unicode.IsControl) {
			return "", fmt.Errorf("the argument %q stands in a path and cannot hold control characters", p.arg)
		}
		escaped, plain = escaped+url.PathEscape(v), plain+v
	}
	// A slash is sent escaped, but servers differ on when they unescape: nothing that could then be a
	// step up is sent at all.
	if hasArg(segment) && slices.ContainsFunc(strings.FieldsFunc(plain, isSlash), isDots) {
		return "", errors.New(`arguments that make "." or ".." of a piece of the path are refused`)
	}
	return escaped, nil
}

func hasArg(segment []piece) bool {
	return slices.ContainsFunc(segment, func(p piece) bool { return p.arg != "" })
}

func isSlash(r rune) bool  { return r == '/' || r == '\\' }
func isDots(s string) bool { return s == "." || s == ".." }

func (t *target) queryOf(args map[string]json.RawMessage) (string, error) {
	var out []string
	for _, kv := range t.query {
		text, whole := kv.key, true
		for _, p := range kv.value {
			if p.arg == "" {
				text += p.literal
				continue
			}
			v, ok, err := scalar(p.arg, args[p.arg])
			if err != nil {
				return "", err
			}
			text, whole = text+url.QueryEscape(v), whole && ok
		}
		if whole {
			out = append(out, text)
		}
	}
	for _, name := range t.extra {
		values := []json.RawMessage{args[name]}
		if bytes.HasPrefix(args[name], []byte("[")) {
			if err := json.Unmarshal(args[name], &values); err != nil {
				return "", err
			}
		}
		for _, raw := range values {
			v, ok, err := scalar(name, raw)
			if err != nil {
				return "", err
			}
			if ok {
				out = append(out, url.QueryEscape(name)+"="+url.QueryEscape(v))
			}
		}
	}
	return strings.Join(out, "&"), nil
}

// scalar returns the text of a string, number (as it is written) or boolean; not ok is absent or null.
func scalar(name string, raw json.RawMessage) (text string, ok bool, err error) {
	if len(raw) == 0 || string(raw) == "null" {
		return "", false, nil
	}
	switch raw[0] {
	case '"':
		err := json.Unmarshal(raw, &text)
		return text, err == nil, err
	case '{', '[':
		return "", false, fmt.Errorf("the argument %s is sent in the URL and must be a string, number or boolean",
			clip(strconv.QuoteToASCII(name), 80))
	default:
		return string(raw), true, nil
	}
}
