package activities

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/transcript"
)

func TestAConversationIsWhatAStrictProviderTakes(t *testing.T) {
	t.Parallel()
	say := func(role agent.Role, text string) transcript.Entry { return transcript.Entry{Role: role, Text: text} }
	asks := func(ids ...string) transcript.Entry {
		e := transcript.Entry{Role: agent.RoleAssistant}
		for _, id := range ids {
			e.Calls = append(e.Calls, transcript.Call{ID: id, Name: "pay", Args: `{"text":"a\ud835b"}`})
		}
		return e
	}
	result := func(id, text string) transcript.Entry {
		return transcript.Entry{Role: agent.RoleTool, Call: id, Text: text}
	}
	th := thread{
		entries: []transcript.Entry{
			say(agent.RoleUser, "one"), say(agent.RoleUser, "two"), say(agent.RoleAssistant, ""),
			asks("a", "b", "c"), say(agent.RoleUser, "wait"), result("c", ""), result("a", strings.Repeat("x", 100)), result("a", "late"), result("z", "stray"),
			asks("d"),
		},
		gaps: []transcript.Gap{{At: 0}, {At: 10}},
	}
	for _, e := range th.entries {
		th.texts = append(th.texts, e.Text)
	}
	var got []string
	for _, m := range th.messages("Be exact.", 60) {
		line := m.Role + " " + m.CallID + " " + m.Text
		for _, c := range m.Calls {
			line += c.ID + c.Args
		}
		got = append(got, line)
	}
	gap := "[notice] A part of the conversation could not be read from the store and is missing here. Do not guess what was said."
	want := []string{
		"system  Be exact.",
		"user  " + gap + "\n\none\n\ntwo",
		"assistant  a{}b{}c{}",
		"tool a " + strings.Repeat("x", 40) + "\n[... 40 of 100 bytes left out here ...]\n" + strings.Repeat("x", 20),
		"tool b " + unanswered,
		"tool c ",
		"user  wait\n\n[notice] A result of the tool call \"a\": late\n\n[notice] A result of the tool call \"z\": stray",
		"assistant  d{}",
		"tool d " + unanswered,
		"user  " + gap,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages differ (-want +got):\n%s", diff)
	}
}

func TestCallIDsAreUniqueInTheConversationAndTheSameEachTime(t *testing.T) {
	t.Parallel()
	calls := []openai.Call{{ID: "call_1"}, {ID: "call_2"}, {ID: "call_2"}, {ID: ""}, {ID: "a/b"}, {ID: strings.Repeat("x", 41)}}
	used := map[string]bool{"call_1": true}
	ids := callIDs(calls, used, agent.Place{Turn: 1, Step: 2})
	if diff := cmp.Diff(ids, callIDs(calls, used, agent.Place{Turn: 1, Step: 2})); diff != "" {
		t.Errorf("ids are not the same each time:\n%s", diff)
	}
	seen := map[string]bool{"call_1": true}
	for i, id := range ids {
		if seen[id] || !callID.MatchString(id) {
			t.Errorf("id %d is %q", i, id)
		}
		seen[id] = true
	}
	if ids[1] != "call_2" {
		t.Errorf("a good id was changed to %q", ids[1])
	}
}
