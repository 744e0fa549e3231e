package activities

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/tool"
)

func TestACallThatCannotRunSaysWhyAndCarriesNoArguments(t *testing.T) {
	t.Parallel()
	s := spec(agent.ClassOnce)
	s.Parameters = []byte(`{"type":"object","properties":{"amount":{"type":"number"}},"required":["amount"],"additionalProperties":false}`)
	other := spec(agent.ClassOnce)
	other.Name = "delete"
	w := newWorld(t, "mem://", newFake(t, s, nil))
	full := worldOver(t, w.Store, newFake(t, s, nil), newFake(t, other, nil))
	// The worker has two tools, the agent lists one.
	d := &desk{snap: full.snap, def: w.snap.Agents["clerk"], scope: w.scope, place: agent.Place{Turn: 1, Step: 1}}
	good := openai.Call{Name: "pay", Args: `{"amount":1}`}
	for _, c := range []struct {
		name   string
		call   openai.Call
		finish agent.Finish
		want   string
	}{
		{"good", good, agent.FinishCalls, ""},
		{"cut off, though whole", good, agent.FinishLength, "cut off by the output limit"},
		{"filtered", good, agent.FinishFilter, "content filter"},
		{"stopped", good, agent.FinishStop, "not finished"},
		{"unknown", openai.Call{Name: "Pay", Args: `{"amount":1}`}, agent.FinishCalls, `no tool "Pay"; the tools are pay`},
		{"look-alike", openai.Call{Name: "p\u0430y\u200b", Args: `{}`}, agent.FinishCalls, "the tools are pay"},
		{"not listed", openai.Call{Name: "delete", Args: `{}`}, agent.FinishCalls, "not allowed (not-listed); the tools are pay"},
		{"damaged", openai.Call{Name: "pay", Args: `{"amount":1}`, Damaged: "bytes that are not UTF-8"}, agent.FinishCalls, "not UTF-8"},
		{"not JSON", openai.Call{Name: "pay", Args: `{"amount":`}, agent.FinishCalls, "cannot be used"},
		{"against the schema", openai.Call{Name: "pay", Args: `{"amount":"1"}`}, agent.FinishCalls, "amount"},
	} {
		got := told(d.calls([]openai.Call{c.call}, []string{"c1"}, c.finish))[0]
		if (got.Trouble == "") != (c.want == "") || !strings.Contains(got.Trouble, c.want) {
			t.Errorf("%s: trouble %q, want %q", c.name, got.Trouble, c.want)
		}
		if (got.Args == "") != (c.want != "") || strings.Contains(got.Tool, "\u200b") {
			t.Errorf("%s: call %+v", c.name, got)
		}
	}
	d.def.Limits.Calls = 2
	calls := d.calls([]openai.Call{good, good, good}, []string{"a", "b", "c"}, agent.FinishCalls)
	if calls[1].Trouble != "" || !strings.Contains(calls[2].Trouble, "at most 2 calls") || calls[0].Action == calls[1].Action {
		t.Errorf("calls %+v", calls)
	}
}

func TestAnActionIsNotSentWhenTheCancellationComesAfterItsRecord(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFake(t, spec(agent.ClassOnce), nil)
		w := newWorld(t, "mem://", f)
		in := w.asked("pay", `{}`)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		r := &toolRun{
			Activities: w.Activities, pulse: &pulse{ctx: ctx, attempt: 1, beat: func(Progress) {}}, snap: w.snap, in: in,
			space: w.space(), key: keyOf(in), tool: tool.Tool(f), spec: f.spec,
		}
		res, err := r.first(w.dispatch(in, now()), now())
		if err != nil {
			t.Fatal(err)
		}
		wantState(t, res, agent.StateFailed)
		if f.count() != 0 || !strings.Contains(res.Text, "nothing was sent") || !w.recorded(keyOf(in)) {
			t.Errorf("sent %d times: %+v", f.count(), res)
		}
	})
}

func TestToolsOfAnotherVersionThanTheDefinitionsAreNoticed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "mem://", newFake(t, spec(agent.ClassOnce), nil))
	def := w.snap.Agents["clerk"]
	if d := (&desk{snap: w.snap, def: def}); len(def.Tools) == 0 || !d.asDefined() {
		t.Errorf("tools %+v are not as defined", def.Tools)
	}
	other := def
	other.Tools = []agent.ToolRef{{Name: def.Tools[0].Name, Version: agent.DigestOf([]byte("another"))}}
	if d := (&desk{snap: w.snap, def: other}); d.asDefined() {
		t.Error("another version was not noticed")
	}
}
