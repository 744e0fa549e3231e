package approval_test

import (
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

func TestActionDigestTellsEveryPartApart(t *testing.T) {
	t.Parallel()
	base := approval.Action{Tool: "pay", Version: "v", Args: `{"a":1}`, Resource: "r", Place: agent.Place{Turn: 1, Step: 2, Call: 3}}
	others := map[string]func(*approval.Action){
		"tool":     func(a *approval.Action) { a.Tool = "refund" },
		"version":  func(a *approval.Action) { a.Version = "w" },
		"args":     func(a *approval.Action) { a.Args = `{"a":1.0}` },
		"resource": func(a *approval.Action) { a.Resource = "" },
		"turn":     func(a *approval.Action) { a.Place.Turn = 2 },
		"step":     func(a *approval.Action) { a.Place.Step = 3 },
		"call":     func(a *approval.Action) { a.Place.Call = 4 },
		"bad byte": func(a *approval.Action) { a.Resource = "r\xff" },
		"replaced": func(a *approval.Action) { a.Resource = "r\ufffd" },
		"spelled":  func(a *approval.Action) { a.Resource = `{"hex":"72ff"}` },
	}
	seen := map[agent.Digest]string{base.Digest(): "base"}
	for name, change := range others {
		a := base
		change(&a)
		d := a.Digest()
		if !d.Valid() {
			t.Errorf("%s: %q is no digest", name, d)
		}
		if other, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", name, other)
		}
		seen[d] = name
	}
}

// The digest stands in idempotency keys and approvals: a change here means that running turns derive
// other keys than they did before.
func TestActionDigestIsTheSameForEver(t *testing.T) {
	t.Parallel()
	a := approval.Action{
		Tool: "pay", Version: agent.DigestOf([]byte("v")), Args: `{"amount":10,"to":"é"}`, Resource: "acct/1",
		Place: agent.Place{Turn: 1, Step: 2, Call: 3},
	}
	if got, want := a.Digest().Short(), "0893ff745131faa2"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	i, err := approval.IntentDigest("pay", a.Args, nil, a.Resource)
	if got, want := i.Short(), "44cce8f1546bb7bb"; err != nil || got != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}

func TestIntentTakesNumbersByValue(t *testing.T) {
	t.Parallel()
	intent := func(number string) agent.Digest {
		t.Helper()
		d, err := approval.IntentDigest("t", `{"n":[{"x":`+number+`}]}`, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	huge := "1" + strings.Repeat("0", 30)
	equal := [][]string{
		{"1", "1.0", "10e-1", "0.1e1", "1e0", "1E+0", "1e-0", "100e-2", "0.001e03"},
		{"0", "-0", "0.0", "0e5", "-0.00e-99", "0e999999999999999999999999999"},
		{"-12.5", "-125e-1", "-0.125e2", "-12.500"},
		{"1e999999999", "10e999999998", "0.1e1000000000"},
		{"1e-" + huge, "10e-1" + strings.Repeat("0", 29) + "1", "0.1e-" + strings.Repeat("9", 30)},
		{"9007199254740993", "9007199254740993.0"},
		{"9007199254740992"},
		{"1e-400"},
		{"12.5"},
		{"10"},
		{"100"},
	}
	seen := map[agent.Digest]int{}
	for i, group := range equal {
		for _, n := range group {
			d := intent(n)
			if j, ok := seen[d]; ok && j != i {
				t.Errorf("%s has the intent of %s", n, equal[j][0])
			}
			if d != intent(group[0]) {
				t.Errorf("%s differs from %s", n, group[0])
			}
			seen[d] = i
		}
	}
	if intent(`1`) == intent(`"1"`) {
		t.Error("a number and a string are one intent")
	}
}

func TestIntentLooksAtTheIdentityOnly(t *testing.T) {
	t.Parallel()
	intent := func(tool, args, resource string, identity ...string) agent.Digest {
		t.Helper()
		d, err := approval.IntentDigest(tool, args, identity, resource)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	a := intent("pay", `{"note":"x","order":1}`, "", "order")
	if a != intent("pay", `{"note":"y","order":1.0}`, "", "order") {
		t.Error("a note changed the intent")
	}
	for name, other := range map[string]agent.Digest{
		"order":    intent("pay", `{"note":"x","order":2}`, "", "order"),
		"tool":     intent("refund", `{"note":"x","order":1}`, "", "order"),
		"resource": intent("pay", `{"note":"x","order":1}`, "r", "order"),
		"absent":   intent("pay", `{"note":"x"}`, "", "order"),
		"null":     intent("pay", `{"note":"x","order":null}`, "", "order"),
		"all":      intent("pay", `{"note":"x","order":1}`, ""),
	} {
		if a == other {
			t.Errorf("%s does not count", name)
		}
	}
	if _, err := approval.IntentDigest("pay", `[1]`, nil, ""); err == nil {
		t.Error("an array has an intent")
	}
}

func TestVisibleShowsWhatAReaderWouldNotSee(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"":                         "",
		"plain text, é, 中文, 😀":     "plain text, é, 中文, 😀",
		"ac\u200bme":               "ac⟨U+200B⟩me",
		"a\nb\tc\x1b[31m\x00\x7f":  "a⟨U+000A⟩b⟨U+0009⟩c⟨U+001B⟩[31m⟨U+0000⟩⟨U+007F⟩",
		"\u202eevil\u2066":         "⟨U+202E⟩evil⟨U+2066⟩",
		"ok\U000e0069\U000e0067":   "ok⟨U+E0069⟩⟨U+E0067⟩",
		"a\u00a0b\u2003c\u3000":    "a⟨U+00A0⟩b⟨U+2003⟩c⟨U+3000⟩",
		"\u034f\u3164\uffa0\u2800": "⟨U+034F⟩⟨U+3164⟩⟨U+FFA0⟩⟨U+2800⟩",
		"\ufe0f\U000e0100\u180b":   "⟨U+FE0F⟩⟨U+E0100⟩⟨U+180B⟩",
		"\u2028\u2029\u0085\ufeff": "⟨U+2028⟩⟨U+2029⟩⟨U+0085⟩⟨U+FEFF⟩",
		"\u00ad\ue000\U0010ffff":   "⟨U+00AD⟩⟨U+E000⟩⟨U+10FFFF⟩",
		"\xff\xc3":                 "⟨xFF⟩⟨xC3⟩",
		"\ufffd":                   "\ufffd",
		"⟨U+200B⟩":                 "⟨U+27E8⟩U+200B⟩",
	}
	for in, want := range cases {
		if got := approval.Visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
