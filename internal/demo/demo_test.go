package demo

import (
	"bytes"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
	"github.com/holdfast-run/holdfast/worker"
)

func TestOnlyExactlyOneRefundUnderOneKeyPasses(t *testing.T) {
	t.Parallel()
	right := payments.Entry{Refund: "re_1", Key: "k", Order: order, Amount: price}
	for name, c := range map[string]struct {
		books    payments.Books
		unharmed bool
		want     string // part of the error; empty is none
	}{
		"one":          {payments.Books{Entries: []payments.Entry{right}, Requests: map[string]int{"k": 2}}, false, ""},
		"none":         {payments.Books{}, true, "no refund"},
		"two":          {payments.Books{Entries: []payments.Entry{right, right}, Requests: map[string]int{"k": 1, "l": 1}}, false, "2 refunds"},
		"no kill":      {payments.Books{Entries: []payments.Entry{right}, Requests: map[string]int{"k": 1}}, true, "never killed"},
		"two keys":     {payments.Books{Entries: []payments.Entry{right}, Requests: map[string]int{"k": 1, "l": 1}}, false, "2 keys"},
		"wrong amount": {payments.Books{Entries: []payments.Entry{{Key: "k", Order: order, Amount: 1}}, Requests: map[string]int{"k": 2}}, false, "0.01 for order 42"},
		"wrong order":  {payments.Books{Entries: []payments.Entry{{Key: "k", Order: "43", Amount: price}}, Requests: map[string]int{"k": 2}}, false, "order 43"},
	} {
		err := verdict(c.books, c.unharmed)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.want)
		}
	}
}

func TestTheBooksInALine(t *testing.T) {
	t.Parallel()
	e := payments.Entry{Order: order, Amount: price}
	for want, b := range map[string]payments.Books{
		"1 refund of 19.90 for order 42, 2 requests with the same key": {Entries: []payments.Entry{e}, Requests: map[string]int{"k": 2}},
		"2 refunds, 3 requests with 2 keys":                            {Entries: []payments.Entry{e, e}, Requests: map[string]int{"k": 2, "l": 1}},
	} {
		if got := summary(b); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestTheConfigurationIsOneThatAWorkerTakes(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]places{
		"scripted": {BaseURL: "http://127.0.0.1:1/v1", Model: "scripted"},
		"somebody's own, with a name that YAML would read as something else": {Model: `no: "1.0"`, Key: "env:PATH"}, // any variable that is set
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p.Agent, p.Store, p.Payments, p.Heartbeat = agentName, "file://"+dir, "http://127.0.0.1:2", heartbeat
			path := filepath.Join(dir, "holdfast.yaml")
			if err := writeConfig(path, p); err != nil {
				t.Fatal(err)
			}
			cfg, err := worker.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			if got := cfg.Models["main"].Model; got != p.Model {
				t.Errorf("model %q, want %q", got, p.Model)
			}
			if got := cfg.Tools["refund"].Effect; got != agent.ClassIdempotent {
				t.Errorf("refund is %q, want %q", got, agent.ClassIdempotent)
			}
			if got := cfg.Tools["refund"].HTTP.URL; got != "http://127.0.0.1:2/refunds" {
				t.Errorf("refund goes to %q", got)
			}
			if got, want := cfg.Agents[agentName].Tools, []string{"lookup_order", "refund"}; !slices.Equal(got, want) {
				t.Errorf("tools %q, want %q", got, want)
			}
		})
	}
}

func TestTheScriptLooksUpThenRefundsThenAnswers(t *testing.T) {
	t.Parallel()
	messages := []modeltest.Message{{Role: "user", Content: request}}
	var asked []string
	for range 2 {
		step := script(modeltest.Request{Messages: messages})
		for _, name := range []string{"lookup_order", "refund"} {
			if bytes.Contains(step.Message, []byte(name)) {
				asked = append(asked, name)
			}
		}
		messages = append(messages, modeltest.Message{Role: "assistant"}, modeltest.Message{Role: "tool", CallID: "c"})
	}
	if diff := cmp.Diff([]string{"lookup_order", "refund"}, asked); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
	if last := script(modeltest.Request{Messages: messages}); !bytes.Contains(last.Message, []byte("has been refunded")) {
		t.Errorf("last answer %s", last.Message)
	}
}

func TestLinesAreHandedOnWhole(t *testing.T) {
	t.Parallel()
	var got []string
	w := &lines{each: func(s string) { got = append(got, s) }}
	for _, part := range []string{"on", "e\ntwo\n\nth", "ree\n", "cut"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if diff := cmp.Diff([]string{"one", "two", "three"}, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
}

func TestEventsStandInColumnsWithTheirTime(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newPrinter(&out, func(s string) string { return "<" + s + ">" })
	p.start = time.Now().Add(-1500 * time.Millisecond)
	p.event("turn", "step %d", 1)
	p.shout("KILL", "now")
	want := "   1.5 s  turn      step 1\n<   1.5 s  KILL      now>\n"
	if got := out.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
