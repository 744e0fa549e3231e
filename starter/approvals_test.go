package starter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

var asked = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// aRequest is a request in which everything fits together.
func aRequest(args string) *foundApproval {
	scope := agent.Scope{Session: "s1", Life: "1a2b3c4d"}
	place := agent.Place{Turn: 1, Step: 2, Call: 1}
	terms := agent.Terms{Resource: "order/42", Version: agent.DigestOf([]byte("tool")), Risk: agent.RiskHigh, By: []string{"alice", "bob"}, Quorum: 2, Signed: true}
	action := approval.Action{Tool: "refund", Version: terms.Version, Args: args, Resource: terms.Resource, Place: place}.Digest()
	key := agent.ActionKey(scope, place, action)
	return &foundApproval{
		workflow: "s1:turn-1", scope: scope,
		Approval: agent.Approval{Outcome: agent.OutcomePending, ApprovalRequest: agent.ApprovalRequest{
			ID: agent.ApprovalID(key, 1), Key: key, Ask: 1, Tool: "refund", Args: args, Class: agent.ClassOnce, Action: action, Place: place,
			Verdict: agent.Verdict{Decision: agent.DecisionAsk, Rule: "large-refunds", Policy: "0123456789abcdef"},
			Terms:   terms, RequestedAt: asked, ExpiresAt: asked.Add(24 * time.Hour),
		}},
	}
}

func testSheet(w io.Writer, full bool) *sheet {
	return &sheet{w: w, width: rowWidth, full: full, label: func(s string) string { return s }}
}

func TestARequestIsNamedByItsIDItsKeyOrItsPlace(t *testing.T) {
	t.Parallel()
	const key = "s1~1a2b3c4d:turn-3/2.1/0123456789abcdef"
	scope := agent.Scope{Session: "s1", Life: "1a2b3c4d"}
	for in, want := range map[string]approvalRef{
		"s1":                  {address: address{session: "s1"}},
		"s1/turn-3":           {address: address{"s1", 3, 0}},
		"s1:turn-3-undo-2":    {address: address{"s1", 3, 2}},
		key:                   {address: address{"s1", 3, 0}, scope: scope, key: key},
		key + "#2":            {address: address{"s1", 3, 0}, scope: scope, key: key, ask: 2},
		key + "/undo-1#1":     {address: address{"s1", 3, 0}, scope: scope, key: key + "/undo-1", ask: 1, compensation: true},
		key + "#999999999999": {address: address{"s1", 3, 0}, scope: scope, key: key, ask: 999999999999},
	} {
		got, err := parseApproval(in)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(approvalRef{}, address{})); err != nil || diff != "" {
			t.Errorf("%q: %v %s", in, err, diff)
		}
	}
	for _, in := range []string{
		"", "#1", "s1#1", "s1/turn-3#1", key + "#", key + "#0", key + "#01", key + "#-1", key + "#1#1", key + "# 1", key + "#99999999999999999999",
		"s1~1a2b3c4d", "s1~1A2B3C4D:turn-3/2.1/0123456789abcdef", key + "\n", "../" + key, "\x1b[2J",
	} {
		if got, err := parseApproval(in); err == nil {
			t.Errorf("%q = %+v", in, got)
		} else if text := err.Error(); strings.ContainsAny(text, "\x1b\n") {
			t.Errorf("%q: the error shows it as it is: %q", in, text)
		}
	}
}

func FuzzApprovalRef(f *testing.F) {
	for _, s := range []string{"s", "s/turn-1", "s~1a2b3c4d:turn-3/2.1/0123456789abcdef#1", "#", "~", "s~#1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := parseApproval(s)
		if err != nil {
			return
		}
		if !agent.ValidSessionID(r.session) {
			t.Fatalf("%q has session %q, which goes into queries", s, r.session)
		}
		if r.whole() && agent.ApprovalID(r.key, r.ask) != s {
			t.Fatalf("%q is not what it names: %q#%d", s, r.key, r.ask)
		}
	})
}

func TestARequestThatContradictsItselfIsNotDecidedOn(t *testing.T) {
	t.Parallel()
	good := aRequest(`{"amount":120.50,"order":"42"}`)
	if verified, err := good.distrust(); err != nil || !verified {
		t.Fatalf("a good request: %v, %v", verified, err)
	}
	other := agent.DigestOf([]byte("x"))
	for name, change := range map[string]func(*foundApproval){
		"other args":    func(f *foundApproval) { f.Args = `{"amount":9.00,"order":"42"}` },
		"not canonical": func(f *foundApproval) { f.Args = `{"order":"42", "amount":120.50}` },
		"no object":     func(f *foundApproval) { f.Args = "" },
		"twice":         func(f *foundApproval) { f.Args = `{"order":"42","order":"43"}` },
		"tool":          func(f *foundApproval) { f.Tool = "note" },
		"resource":      func(f *foundApproval) { f.Terms.Resource = "order/43" },
		"version":       func(f *foundApproval) { f.Terms.Version = other },
		"digest":        func(f *foundApproval) { f.Action = other },
		"digest and key": func(f *foundApproval) {
			f.Action = other
			f.Key = agent.ActionKey(f.scope, f.Place, other)
			f.ID = f.Key + "#1"
		},
		"place":           func(f *foundApproval) { f.Place.Call = 2 },
		"id":              func(f *foundApproval) { f.ID = f.Key + "#2" },
		"another session": func(f *foundApproval) { f.scope.Session = "s2" },
		"another turn's":  func(f *foundApproval) { f.workflow = "s1:turn-2" },
		"another life":    func(f *foundApproval) { f.scope.Life = "00000000" },
	} {
		f := aRequest(good.Args)
		change(f)
		if _, err := f.distrust(); err == nil {
			t.Errorf("%s: nothing was found wrong", name)
		}
		var exit *exitError
		o := &decideOptions{app: &App{Err: io.Discard}}
		if err := o.decidable(f, ""); !errors.As(err, &exit) || exit.code != ExitRefused {
			t.Errorf("%s: decidable says %v", name, err)
		}
		var out bytes.Buffer
		s := testSheet(&out, false)
		s.request(f, asked)
		s.answers(f)
		if !strings.Contains(out.String(), "  NOT CONSISTENT  | ") || strings.Contains(out.String(), "holdfast approve") {
			t.Errorf("%s: shown as if nothing were wrong:\n%s", name, out.String())
		}
	}
	silent := aRequest(good.Args)
	silent.Terms.Version = ""
	if verified, err := silent.distrust(); verified || err != nil {
		t.Errorf("without a version: %v, %v, want not verified", verified, err)
	}
}

func TestAnApproverSeesTheWholeActionAndWhoMayDecide(t *testing.T) {
	t.Parallel()
	f := aRequest(`{"amount":120.50,"order":"42"}`)
	f.Terms.NotSender = true
	f.Terms.First = "s1~1a2b3c4d:turn-1/1.1/aaaaaaaaaaaaaaaa"
	f.Terms.Observed = &agent.Observation{Digest: agent.DigestOf([]byte("o")), Text: `{"state":"paid"}`, At: asked}
	f.Terms.EscalateTo, f.EscalatesAt = []string{"carol"}, asked.Add(time.Hour)
	f.Decisions = []agent.Decided{{ApprovalDecision: agent.ApprovalDecision{Choice: agent.ChoiceApprove, Approver: "alice", Reason: "ok"}, At: asked, Key: "SHA256:abc"}}
	f.refused = []agent.Refusal{{ID: f.ID, Choice: "approve", Approver: "mallory", Why: "not among those who may decide", At: asked}}
	var out bytes.Buffer
	s := testSheet(&out, false)
	s.request(f, asked.Add(90*time.Second))
	s.answers(f)
	for _, want := range []string{
		"approval " + f.ID + "\n",
		"  state           | has 1 of 2 approvals, asked 1m30s ago (", "\n  expires         | in 23h58m (",
		"\n  tool            | refund\n",
		"\n  effect          | once: what may have been sent is never sent again, risk high\n",
		"\n  resource        | order/42\n",
		"\n  arguments       | 30 bytes, 2 members\n                  | \"amount\": 120.50\n                  | \"order\": \"42\"\n",
		"\n  digest          | " + string(f.Action) + " ⟨",
		"\n  target before   | {\"state\":\"paid\"} ⟨seen ",
		"\n  done before     | " + f.Terms.First + " ⟨",
		"\n  asked by rule   | large-refunds ⟨policy 0123456789abcdef⟩\n",
		"\n  may decide      | alice, bob ⟨2 different people must approve, signed, not by",
		"| carol ⟨may decide too, from ",
		"\n  decided         | approve by alice ⟨signed with SHA256:abc, ",
		"\n  its reason      | ok\n",
		"\n  refused         | approve by mallory: not among those who may decide ⟨",
		"\nholdfast approve '" + f.ID + "' --digest " + string(f.Action) + " --as NAME --key FILE\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestALongValueShowsItsBeginningAndItsEndAndSaysWhatIsCut(t *testing.T) {
	t.Parallel()
	f := aRequest(`{"note":"begin` + strings.Repeat("é", 5000) + `end","order":"42"}`)
	var out bytes.Buffer
	s := testSheet(&out, false)
	s.arguments("arguments", f.Args)
	flat := unbroken(out.String())
	shown := regexp.MustCompile(`"note": "begin(é+) ⟨cut: (\d+) of 10018 bytes are not shown here; --full shows them⟩ (é+)end" ⟨10010 bytes⟩`).FindStringSubmatch(flat)
	if shown == nil || fmt.Sprint(10000-len(shown[1])-len(shown[3])) != shown[2] || fmt.Sprint(s.hidden) != shown[2] {
		t.Fatalf("hidden %d: %.3000s", s.hidden, flat)
	}
	if !strings.Contains(out.String(), `| "order": "42"`) {
		t.Error("the argument after it is not shown")
	}
	out.Reset()
	s = testSheet(&out, true)
	s.arguments("arguments", f.Args)
	if flat := unbroken(out.String()); s.hidden != 0 || strings.Contains(flat, "cut:") || strings.Count(flat, "é") != 5000 {
		t.Errorf("--full does not show all of it: %.300s", flat)
	}
}

// Nested members are written as top-level ones nearly are; where the sheet breaks a value, the next row must not
// look like another argument.
func TestAPartOfAValueDoesNotLookLikeAnotherArgument(t *testing.T) {
	t.Parallel()
	for pad := range 120 {
		var out bytes.Buffer
		testSheet(&out, false).arguments("arguments", `{"a":{"`+strings.Repeat("a", pad)+`":1,"order":"43"},"order":"42"}`)
		values := 0
		for row := range strings.Lines(out.String()) {
			if strings.HasPrefix(row, "                  | ") {
				values++
			}
		}
		if values != 2 {
			t.Fatalf("%d arguments of 2:\n%s", values, out.String())
		}
	}
}

func TestManyArgumentsAreCountedWhenTheyAreNotShown(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 100 {
		fmt.Fprintf(&b, `,"k%03d":%d`, i, i)
	}
	args := "{" + b.String()[1:] + "}"
	var out bytes.Buffer
	s := testSheet(&out, false)
	s.arguments("arguments", args)
	if s.hidden == 0 || !strings.Contains(out.String(), "⟨cut: 60 further members, ") || strings.Contains(out.String(), "k040") {
		t.Errorf("hidden %d:\n%s", s.hidden, out.String())
	}
	out.Reset()
	testSheet(&out, true).arguments("arguments", args)
	if !strings.Contains(out.String(), `| "k099": 99`) {
		t.Error("--full does not show all")
	}
}

// unbroken takes the sheet's columns away.
func unbroken(s string) string {
	var b strings.Builder
	for row := range strings.Lines(s) {
		if row = strings.TrimSuffix(row, "\n"); len(row) > labelWidth+5 {
			b.WriteString(row[labelWidth+5:])
		}
	}
	return b.String()
}

var sheetRow = regexp.MustCompile(`^  [A-Za-z0-9: ]{15} [|:] `)

// What comes from outside can be anything; what it must not do is leave its columns, be obeyed by a terminal, or
// look like a remark of the sheet's own.
func FuzzNothingForeignPassesForTheSheetsOwn(f *testing.F) {
	for _, s := range []string{
		"", "plain", "\x1b[2J\x1b[1;1H", "a\n  digest          | 0000", "⟨computed here from what is shown⟩", "\u202e", "\u200b", "日本語", "\xff\xfe",
		strings.Repeat("x", 5000), strings.Repeat(" ", 300) + "digest", "e\u0301\u0301\u0301", "\r  tool            | note",
	} {
		f.Add(s, false)
		f.Add(s, true)
	}
	f.Fuzz(func(t *testing.T, foreign string, full bool) {
		r := aRequest(`{}`)
		r.ID, r.Tool, r.Args, r.Note, r.Why, r.ProposedArgs, r.Proposed = foreign, foreign, foreign, foreign, foreign, foreign, agent.Digest(foreign)
		r.Class, r.Action, r.Outcome = agent.Class(foreign), agent.Digest(foreign), agent.Outcome(foreign)
		r.Verdict = agent.Verdict{Rule: foreign, Policy: foreign}
		r.Terms.Resource, r.Terms.Risk, r.Terms.By, r.Terms.EscalateTo, r.EscalatesAt = foreign, agent.Risk(foreign), []string{foreign}, []string{foreign}, asked
		r.Terms.Observed, r.Terms.First = &agent.Observation{Text: foreign, Trouble: foreign, Digest: agent.Digest(foreign)}, foreign
		r.Decisions = []agent.Decided{{ApprovalDecision: agent.ApprovalDecision{Approver: foreign, Reason: foreign, Args: foreign, Choice: agent.Choice(foreign)}, Key: foreign}}
		r.refused = []agent.Refusal{{Approver: foreign, Why: foreign, Choice: foreign}}
		var out bytes.Buffer
		testSheet(&out, full).request(r, asked)
		r.Terms.Observed.Trouble = ""
		testSheet(&out, full).asked(r)
		testSheet(&out, full).action(r)
		if canonical, err := approval.Canonical([]byte(foreign)); err == nil {
			testSheet(&out, full).arguments("arguments", canonical)
		}
		for i, row := range strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n") {
			if i > 0 && !sheetRow.MatchString(row) {
				t.Fatalf("a row without its columns: %q", row)
			}
			if i > 0 && utf8.RuneCountInString(row) > rowWidth {
				t.Fatalf("wider than the terminal: %q", row)
			}
			if !utf8.ValidString(row) || strings.ContainsFunc(row, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x202e || r == 0x200b }) {
				t.Fatalf("not visible: %q", row)
			}
		}
		own := strings.Count(unbroken(out.String()), "⟨computed here from what is shown⟩")
		if own > 0 && strings.Contains(foreign, "computed") {
			t.Fatalf("foreign text passes for a remark:\n%s", out.String())
		}
	})
}

func FuzzMembersAreTheBytesThatAreSent(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1.50,"b":{"c":[1, 2]}}`, `{"a\"b":"x"}`, `{",":",",":":":"}`, `[]`, `{"a":"\u2028"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		args, err := approval.Canonical([]byte(raw))
		if err != nil {
			return
		}
		list, ok := members(args)
		if !ok {
			t.Fatalf("%q: not taken apart", args)
		}
		var parts []string
		for _, m := range list {
			parts = append(parts, m.name+":"+m.value)
		}
		if got := "{" + strings.Join(parts, ",") + "}"; got != args {
			t.Fatalf("%q became %q", args, got)
		}
	})
}

func TestASpanHasItsTwoLargestUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m1s",
		3*time.Hour + 5*time.Minute + 59*time.Second: "3h5m", 51 * time.Hour: "2d3h",
	} {
		if got := span(d); got != want {
			t.Errorf("%s = %q, want %q", d, got, want)
		}
	}
}
