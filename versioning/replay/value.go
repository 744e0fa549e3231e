package replay

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

// sameValue says whether two texts are equal, or are JSON of equal values: the order of members and how a string is
// escaped say nothing to whoever decodes them.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	x, okX := valueOf(a)
	y, okY := valueOf(b)
	return okX && okY && reflect.DeepEqual(x, y)
}

// halfPair finds escapes that stand for half a character where the other half may be missing: decoded, all of these are
// the same.
var halfPair = regexp.MustCompile(`\\u[dD][89a-fA-F]`)

// valueOf decodes a text that is one JSON value, numbers as they are written and checkpoints opened. It is false for
// what is no JSON and for what two programs may read as two values: a member that stands twice, text that is no UTF-8.
func valueOf(s string) (any, bool) {
	if !utf8.ValidString(s) || !json.Valid([]byte(s)) || halfPair.MatchString(s) { // a valid text is bounded in depth
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	v, err := readValue(d)
	return v, err == nil
}

var errTwice = errors.New("a member stands twice")

// readValue reads the next value of valid JSON.
func readValue(d *json.Decoder) (any, error) {
	t, err := d.Token()
	switch {
	case err != nil:
		return nil, err
	case t == json.Delim('['):
		return readList(d)
	case t == json.Delim('{'):
		return readObject(d)
	}
	return t, nil
}

func readList(d *json.Decoder) (any, error) {
	list := []any{}
	for d.More() {
		v, err := readValue(d)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

func readObject(d *json.Decoder) (any, error) {
	object := map[string]any{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		if _, twice := object[name]; twice {
			return nil, errTwice
		}
		if object[name], err = readValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return opened(object), err
}

// What stands in the place of a checkpoint's digest that is the one of its bytes: equal states may have other bytes.
const digestOfState = "that of the state"

// opened is a checkpoint with its state as a value, and any other object as it is.
func opened(object map[string]any) any {
	text, isText := object["state"].(string)
	schema, isNumber := object["schema"].(json.Number)
	digest, isDigest := object["digest"].(string)
	if len(object) != 3 || !isText || !isNumber || !isDigest {
		return object
	}
	state, ok := valueOf(text)
	if !ok {
		return object
	}
	out := map[string]any{"schema": schema, "state": state, "digest": digest}
	n, err := schema.Int64()
	if sealed, sealErr := versioning.Seal(int(n), json.RawMessage(text)); err == nil && sealErr == nil &&
		*sealed == (agent.Checkpoint{Schema: int(n), State: text, Digest: agent.Digest(digest)}) {
		out["digest"] = digestOfState
	}
	return out
}
