package replay

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

func TestValuesAreComparedAndNotBytes(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 1<<20)
	for _, c := range []struct {
		name, a, b string
		same       bool
	}{
		{"members in another order", `{"a":1,"b":{"c":[1,{"d":2,"e":3}],"f":4}}`, `{"b":{"f":4,"c":[1,{"e":3,"d":2}]},"a":1}`, true},
		{"white space", `{"a": 1}`, `{"a":1}`, true},
		{"an escaped letter", `"\u003cé"`, `"<\u00e9"`, true},
		{"elements in another order", `[1,2]`, `[2,1]`, false},
		{"a member more", `{"a":1}`, `{"a":1,"b":null}`, false},
		{"an empty list and nothing", `{"a":[]}`, `{"a":null}`, false},
		{"a number and a text", `{"a":1}`, `{"a":"1"}`, false},
		{"a number written otherwise", `1.0`, `1`, false},
		{"numbers beyond a float64", `9007199254740993`, `9007199254740992`, false},
		{"names by their case", `{"a":1}`, `{"A":1}`, false},
		{"a member twice", `{"a":1,"a":2}`, `{"a": 1,"a":2}`, false},
		{"a member twice, deep inside", `[{"b":{"a":1,"a":2}}]`, `[{"b":{"a":2}}]`, false},
		{"a member twice, and the same bytes", `{"a":1,"a":2}`, `{"a":1,"a":2}`, true},
		{"no JSON", `{"a":1`, `{"a":1 `, false},
		{"something behind it", `{"a":1}{}`, `{"a":1} {}`, false},
		{"half a pair", `"\ud800"`, `"\ud801"`, false},
		{"half a pair and its replacement", `"\uD800"`, `"\ufffd"`, false},
		{"bytes that are no text", "\"\xff\"", "\"\xfe\"", false},
		{"too deep to be anything", deep, deep + "[", false},
	} {
		if got := sameValue(c.a, c.b); got != c.same {
			t.Errorf("%s: %v", c.name, got)
		}
		if got := sameValue(c.b, c.a); got != c.same {
			t.Errorf("%s, the other way round: %v", c.name, got)
		}
	}
}

// sealed is a checkpoint as an input has it.
func sealed(t *testing.T, schema int, state string) *agent.Checkpoint {
	t.Helper()
	c, err := versioning.Seal(schema, json.RawMessage(state))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheStateOfACheckpointIsComparedAsAValue(t *testing.T) {
	t.Parallel()
	altered := *sealed(t, 2, `{"b":2,"a":1}`)
	altered.Digest = agent.DigestOf([]byte("another"))
	base := sealed(t, 2, `{"a":1,"b":2}`)
	for _, c := range []struct {
		name  string
		other *agent.Checkpoint
		same  bool
		path  string // where they differ
	}{
		{"members in another order", sealed(t, 2, `{"b":2,"a":1}`), true, ""},
		{"another value", sealed(t, 2, `{"a":1,"b":3}`), false, "in.checkpoint.state.b"},
		{"another schema", sealed(t, 3, `{"a":1,"b":2}`), false, "in.checkpoint.schema"},
		{"a digest of other bytes", &altered, false, "in.checkpoint.digest"},
		{"a member twice", sealed(t, 2, `{"a":1,"b":2,"b":2}`), false, "in.checkpoint.digest"},
	} {
		text := func(c *agent.Checkpoint) string {
			b, err := json.Marshal(agent.TurnInput{Checkpoint: c})
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		a, b := text(base), text(c.other)
		if got := sameValue(a, b); got != c.same {
			t.Errorf("%s: %v", c.name, got)
		}
		if !c.same {
			if got := differ(1, "in", a, b); got[0].What != c.path {
				t.Errorf("%s: they differ at %+v, want %s", c.name, got, c.path)
			}
		}
	}
}

// reordered writes the JSON of a payload with its members backwards, also inside of checkpoints.
func reordered(t *testing.T, p *commonpb.Payload) {
	t.Helper()
	if string(p.GetMetadata()[converter.MetadataEncoding]) != converter.MetadataEncodingJSON {
		return
	}
	p.Data = []byte(backwards(t, string(p.GetData())))
}

func backwards(t *testing.T, text string) string {
	t.Helper()
	var object map[string]json.RawMessage
	var list []json.RawMessage
	var c agent.Checkpoint
	var out []string
	switch d := json.NewDecoder(strings.NewReader(text)); {
	case !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "["):
		return text
	case json.Unmarshal([]byte(text), &list) == nil:
		for _, v := range list {
			out = append(out, backwards(t, string(v)))
		}
		return "[" + strings.Join(out, ",") + "]"
	case json.Unmarshal([]byte(text), &object) != nil:
		t.Fatalf("no JSON: %.80s", text)
	default:
		d.DisallowUnknownFields()
		if d.Decode(&c) == nil && c.Digest != "" {
			c = *sealed(t, c.Schema, backwards(t, c.State))
			return `{"digest":` + quoted(t, string(c.Digest)) + `,"state":` + quoted(t, c.State) + `,"schema":` + string(object["schema"]) + "}"
		}
	}
	names := slices.Sorted(maps.Keys(object))
	slices.Reverse(names)
	for _, name := range names {
		out = append(out, quoted(t, name)+":"+backwards(t, string(object[name])))
	}
	return "{" + strings.Join(out, ",") + "}"
}

func quoted(t *testing.T, s string) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The build that wrote a history may have had the members of its types in any order.
func TestAHistoryWhoseMembersStandInAnotherOrderIsTheSame(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"0.1.0/session-continued.1", "0.1.0/turn-reads-parallel", "0.2.0/session-continued.2", "0.2.0/session-compensates", "0.2.0/session-grants-ahead",
		"0.2.0/session-settles", "0.2.0/turn-compensation-continued.2", "0.2.0/turn-failed-faults", "0.2.0/turn-reset-approved", "0.2.0/turn-waits-continued.1",
	} {
		h := recording(t, name)
		for _, e := range h.GetEvents() {
			if e.GetMarkerRecordedEventAttributes() != nil {
				continue // what the SDK writes there is its own
			}
			if err := Payloads(e, func(p *commonpb.Payload) error { reordered(t, p); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if err := today.Replay(h); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A digest that does not fit is what a run would be refused for.
func TestAStateHandedOnWithAnotherDigestIsADifference(t *testing.T) {
	t.Parallel()
	h := recording(t, "0.2.0/turn-continued.1")
	last := h.GetEvents()[len(h.GetEvents())-1].GetWorkflowExecutionContinuedAsNewEventAttributes()
	in := last.GetInput().GetPayloads()[0]
	var turn agent.TurnInput
	if err := json.Unmarshal(in.GetData(), &turn); err != nil {
		t.Fatal(err)
	}
	in.Data = []byte(strings.ReplaceAll(string(in.GetData()), string(turn.Checkpoint.Digest), string(agent.DigestOf(nil))))
	found := Explain(today.Replay(h))
	if len(found) != 1 || found[0].Event != int64(len(h.GetEvents())) || !strings.Contains(found[0].Recorded, "continued as new.input.checkpoint.digest") {
		t.Errorf("explained as %+v", found)
	}
}

// What is called the same is the same to whoever decodes it.
func FuzzSameValue(f *testing.F) {
	f.Add(`{"a":1,"b":2}`, `{"b":2,"a":1}`)
	f.Add(`{"schema":1,"state":"{\"a\":1}","digest":"x"}`, `{"digest":"x","state":"{\"a\":1}","schema":1}`)
	f.Add(`{"schema":99999999999999999999,"state":"[]","digest":""}`, `[[[[`)
	f.Add(`"\ud83d\ude00"`, "\"\U0001f600\"")
	f.Fuzz(func(t *testing.T, a, b string) {
		same := sameValue(a, b)
		if !sameValue(a, a) || !sameValue(b, b) || sameValue(b, a) != same {
			t.Fatalf("%q and %q: %v", a, b, same)
		}
		if !same || a == b {
			return
		}
		x, y := decoded(t, a), decoded(t, b)
		if !reflect.DeepEqual(x, y) && !strings.Contains(a, "digest") {
			t.Fatalf("%q and %q are called the same", a, b)
		}
	})
}

// decoded is what a program makes of JSON.
func decoded(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}
