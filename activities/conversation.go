package activities

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/transcript"
)

// Texts that stand in a conversation for what is not there.
const (
	// unanswered is the result of a call that has none: providers refuse a call without one. It does
	// not say that the call was not run, because nobody knows.
	unanswered = "no result: the turn ended before this call was answered. Do not assume that it ran or that it did not."
	lostText   = "[this text could not be read from the store and is missing here]"
)

// A thread is a conversation with the texts to be sent.
type thread struct {
	entries []transcript.Entry
	texts   []string
	gaps    []transcript.Gap
	lost    int // texts that could not be read
}

// thread reads what was said up to head and puts the new entries after it.
func (a *Activities) thread(ctx context.Context, s *Snapshot, in agent.ModelInput) (thread, error) {
	conv, err := a.Log.Read(ctx, in.Scope, in.Head)
	if err != nil {
		return thread{}, s.storeTrouble(ctx, "reading the transcript", err)
	}
	t := thread{gaps: conv.Gaps}
	t.entries = append(append(t.entries, conv.Entries...), stored(in.Entries)...)
	// Bytes that are no text are described; they need not be fetched.
	var readable []transcript.Entry
	var at []int
	t.texts = make([]string, len(t.entries))
	for i, e := range t.entries {
		if e.Body != nil && !textual(e.Body.Type) {
			t.texts[i] = describe(*e.Body)
			continue
		}
		readable, at = append(readable, e), append(at, i)
	}
	texts, lost, err := a.Log.Texts(ctx, in.Scope, readable)
	if err != nil {
		return thread{}, s.storeTrouble(ctx, "reading the texts of the transcript", err)
	}
	for i, text := range texts {
		t.texts[at[i]] = text
	}
	for _, i := range lost {
		t.texts[at[i]] = lostText
	}
	t.lost = len(lost)
	return t, nil
}

// stored returns entries in the form of the transcript.
func stored(entries []agent.Entry) []transcript.Entry {
	out := make([]transcript.Entry, len(entries))
	for i, e := range entries {
		out[i] = transcript.Entry{Role: e.Role, Call: e.Call, Text: e.Text, Body: e.Body}
	}
	return out
}

// ids returns the ids of all calls in the conversation.
func (t thread) ids() map[string]bool {
	used := map[string]bool{}
	for _, e := range t.entries {
		for _, c := range e.Calls {
			used[c.ID] = true
		}
	}
	return used
}

// messages returns the conversation as a provider takes it: each call is answered once, right after the
// message that asked; what came between is said after that; whoever speaks twice in a row is heard as one;
// what is missing is said to be missing. A tool's result is shown up to most bytes.
func (t thread) messages(instructions string, most int) []openai.Message {
	b := &builder{}
	if instructions != "" {
		b.out = append(b.out, openai.Message{Role: openai.RoleSystem, Text: instructions})
	}
	gaps := t.gaps
	for i, e := range t.entries {
		for len(gaps) > 0 && gaps[0].At <= i {
			b.gap(gaps[0])
			gaps = gaps[1:]
		}
		b.entry(e, t.texts[i], most)
	}
	for _, g := range gaps {
		b.gap(g)
	}
	b.answer()
	return b.out
}

// builder makes the messages of a thread.
type builder struct {
	out     []openai.Message
	open    []transcript.Call // the calls of the last assistant message
	results map[string]string // of open calls, by id
	later   []string          // said before the open calls were answered
}

func (b *builder) entry(e transcript.Entry, text string, most int) {
	switch e.Role {
	case agent.RoleAssistant:
		b.answer()
		b.assistant(e, text)
	case agent.RoleTool:
		b.result(e, text, most)
	case agent.RoleNotice:
		b.user(notice(text))
	default:
		b.user(text)
	}
}

func notice(text string) string { return "[notice] " + text }

func (b *builder) gap(g transcript.Gap) {
	text := "A part of the conversation could not be read from the store and is missing here. Do not guess what was said."
	if g.Unverified {
		text += " What stands before it may belong to another conversation."
	}
	b.user(notice(text))
}

func (b *builder) assistant(e transcript.Entry, text string) {
	if text == "" && e.Refusal == "" && len(e.Calls) == 0 {
		return // providers refuse a message that says nothing
	}
	m := openai.Message{Role: openai.RoleAssistant, Text: text, Refusal: e.Refusal}
	for _, c := range e.Calls {
		m.Calls = append(m.Calls, openai.Call{ID: c.ID, Name: c.Name, Args: takenBack(c.Args)})
	}
	b.out = append(b.out, m)
	b.open, b.results = e.Calls, map[string]string{}
}

// takenBack returns arguments as a provider takes them back: as the model wrote them if they can be used,
// else an empty object. What we refuse (half a surrogate pair, a thousand levels) is what some provider's
// own parser fails on, and the call's result says what was wrong with it.
func takenBack(args string) string {
	if _, err := approval.Canonical([]byte(args)); err != nil {
		return "{}"
	}
	return openai.ObjectText(args)
}

// result keeps the result of an open call. A second one, or one of a call that is lost, is told as such:
// it cannot be sent as a result.
func (b *builder) result(e transcript.Entry, text string, most int) {
	if !utf8.ValidString(text) {
		text = describe(agent.Body{Digest: agent.DigestOf([]byte(text)), Size: int64(len(text))})
	}
	text = excerpt(text, most)
	_, twice := b.results[e.Call]
	if !twice && b.isOpen(e.Call) {
		b.results[e.Call] = text
		return
	}
	b.user(notice(fmt.Sprintf("A result of the tool call %q: %s", e.Call, text)))
}

func (b *builder) isOpen(id string) bool {
	return slices.ContainsFunc(b.open, func(c transcript.Call) bool { return c.ID == id })
}

// user says something in the user's role, after the results of the open calls.
func (b *builder) user(text string) {
	if len(b.open) > 0 {
		b.later = append(b.later, text)
		return
	}
	if n := len(b.out); n > 0 && b.out[n-1].Role == openai.RoleUser {
		b.out[n-1].Text += "\n\n" + text
		return
	}
	b.out = append(b.out, openai.Message{Role: openai.RoleUser, Text: text})
}

// answer closes the open calls.
func (b *builder) answer() {
	for _, c := range b.open {
		text, ok := b.results[c.ID]
		if !ok {
			text = unanswered
		}
		b.out = append(b.out, openai.Message{Role: openai.RoleTool, CallID: c.ID, Text: text})
	}
	later := b.later
	b.open, b.results, b.later = nil, nil, nil
	for _, text := range later {
		b.user(text)
	}
}
