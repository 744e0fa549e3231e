package activities

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/tool"
)

// turn plays the workflow's part: it asks, runs what may run, and asks again.
func (w *world) turn(ctx context.Context, text string) (final string, last agent.ModelResult) {
	in := w.hears(text)
	var p Progress
	for n := 1; n < 40; n++ {
		res, left, err := w.askOnce(ctx, n, p, in)
		if err != nil {
			var app interface{ NonRetryable() bool }
			if errors.As(err, &app) && !app.NonRetryable() {
				p = left
				continue
			}
			return "failed: " + err.Error(), last
		}
		last, p = res, Progress{}
		in.Head, in.Entries = res.Head, nil
		switch {
		case res.Finish == agent.FinishRefusal:
			return "refusal", res
		case res.Finish == agent.FinishLength && len(res.Calls) == 0:
			in.Entries = []agent.Entry{{Role: agent.RoleNotice, Text: "go on"}}
		case len(res.Calls) == 0:
			return "done", res
		}
		for i, c := range res.Calls {
			in.Entries = append(in.Entries, w.act(ctx, in, i, c))
		}
		in.Step++
	}
	return "never ended", last
}

func (w *world) act(ctx context.Context, in agent.ModelInput, i int, c agent.Call) agent.Entry {
	if c.Trouble != "" {
		return agent.Entry{Role: agent.RoleTool, Call: c.ID, Text: c.Trouble}
	}
	res, _, err := w.attempt(ctx, 1, Progress{}, agent.ToolInput{
		Scope: in.Scope, Place: agent.Place{Turn: in.Turn, Step: in.Step, Call: i + 1}, Definition: in.Definition,
		Tool: c.Tool, Args: c.Args, Class: c.Class, Action: c.Action, Serial: in.Serial,
	})
	if err != nil {
		w.t.Error(err)
	}
	e := agent.Entry{Role: agent.RoleTool, Call: c.ID, Text: res.Text, Body: res.Body}
	if e.Body != nil {
		e.Text = ""
	}
	return e
}

// caseTools are the tools that tests/cases/turns.json speaks of.
func caseTools(t *testing.T) []*fake {
	t.Helper()
	one := func(name string, class agent.Class, schema string, do doFunc) *fake {
		return newFake(t, tool.Spec{Name: name, Class: class, Parameters: []byte(schema)}, do)
	}
	object := func(properties, required string) string {
		return `{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`
	}
	return []*fake{
		one("list_items", agent.ClassRead, object(``, ``), nil),
		one("get_item", agent.ClassRead, object(`"id":{"type":"string"}`, `"id"`), nil),
		one("add_note", agent.ClassOnce, object(`"text":{"type":"string"}`, `"text"`), nil),
		one("pay", agent.ClassOnce, object(`"to":{"type":"string"},"amount":{"type":"number"},"ref":{"type":"integer"}`, `"to","amount"`), nil),
		one("pay_many", agent.ClassOnce, object(`"items":{"type":"array"}`, `"items"`), nil),
		one("empty", agent.ClassRead, object(``, ``), says("")),
		one("blob", agent.ClassRead, object(`"n":{"type":"integer"},"kind":{"type":"string"}`, `"n"`), func(_ context.Context, c tool.Call) (tool.Result, error) {
			var a struct {
				N    int
				Kind string
			}
			err := json.Unmarshal([]byte(c.Args), &a)
			return tool.Result{Data: []byte(strings.Repeat(map[bool]string{true: "\x00\xff", false: "ab"}[a.Kind == "binary"], a.N/2))}, err
		}),
	}
}

func TestEveryOddModelTurnEndsAsItShould(t *testing.T) {
	t.Parallel()
	cases, err := modeltest.Load("../tests/cases/turns.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			fakes := caseTools(t)
			var tools []tool.Tool
			for _, f := range fakes {
				tools = append(tools, f)
			}
			w := newWorld(t, "mem://", tools...)
			def := w.snap.Agents["clerk"]
			def.Limits.Calls = 256
			w.snap.Agents["clerk"] = def
			srv := modeltest.ForTest(t, modeltest.Config{Steps: c.Steps})
			w.connect(t, srv.URL(), c.Streams(true))
			final, last := w.turn(t.Context(), "go")
			kind, _, _ := strings.Cut(final, ":")
			ok := false
			for _, want := range c.Final {
				ok = ok || want == kind
			}
			if !ok {
				t.Errorf("ended as %q (%+v), want %v: %s", final, last, c.Final, c.Expect)
			}
			for _, f := range fakes {
				if want, told := c.Calls[f.spec.Name]; told && !want.Allows(f.count()) {
					t.Errorf("%s ran %d times, want %v: %s", f.spec.Name, f.count(), want, c.Expect)
				}
			}
			if c.MaxRequests > 0 && srv.Count() > c.MaxRequests {
				t.Errorf("asked %d times, want at most %d", srv.Count(), c.MaxRequests)
			}
		})
	}
}
