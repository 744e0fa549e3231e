package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
)

type payIn struct {
	Order  string      `json:"order"`
	Amount json.Number `json:"amount,omitempty"`
}

type receipt struct {
	Refund string `json:"refund"`
}

func pay(context.Context, Call, payIn) (receipt, error) { return receipt{"re_1"}, nil }

func newFunc(t *testing.T, class agent.Class, opts ...Option) Tool {
	t.Helper()
	tool, err := New(Spec{Name: "pay", Class: class}, pay, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func TestAToolSaysTruthfullyWhatItCanDo(t *testing.T) {
	t.Parallel()
	plain := newFunc(t, agent.ClassOnce)
	all := newFunc(t, agent.ClassReconcilable,
		WithReconcile(func(context.Context, Call, payIn) (Finding, receipt, error) { return Found, receipt{}, nil }),
		WithObserve(func(context.Context, Call, payIn) (string, error) { return "", nil }),
		WithCancel(func(context.Context, Call) error { return nil }))
	nothing := newFunc(t, agent.ClassOnce, nil, WithReconcile[payIn, string](nil), WithObserve[payIn, string](nil), WithCancel(nil))
	for title, c := range map[string]struct {
		tool Tool
		want bool
	}{
		"plain": {plain, false}, "all": {all, true}, "nil functions": {nothing, false},
		"written by hand": {byHand{}, true}, "by hand, without": {stub{}, false},
	} {
		_, r := AsReconciler(c.tool)
		_, o := AsObserver(c.tool)
		_, s := AsCanceller(c.tool)
		if r != c.want || o != c.want || s != c.want {
			t.Errorf("%s: reconciles %t, observes %t, cancels %t, want %t", title, r, o, s, c.want)
		}
	}
}

type byHand struct{ stub }

func (byHand) Reconcile(context.Context, Call) (Finding, Result, error) {
	return Unknown, Result{}, nil
}
func (byHand) Observe(context.Context, Call) (Result, error) { return Result{}, nil }
func (byHand) Cancel(context.Context, Call) error            { return nil }

func TestAFunctionSaysWhatBecameOfACall(t *testing.T) {
	t.Parallel()
	for title, c := range map[string]struct {
		finding  Finding
		err      error
		panics   bool
		args     string
		want     Finding
		data     string
		wantFail string
	}{
		"found":              {Found, nil, false, `{"order":"42"}`, Found, `{"refund":"re_42"}`, ""},
		"absent":             {Absent, nil, false, `{"order":"42"}`, Absent, "", ""},
		"unknown":            {Unknown, nil, false, `{"order":"42"}`, Unknown, "", ""},
		"no word for it":     {"", nil, false, `{"order":"42"}`, Unknown, "", ""},
		"found and an error": {Found, errors.New("timed out"), false, `{"order":"42"}`, Unknown, "", "timed out"},
		"a panic":            {Found, nil, true, `{"order":"42"}`, Unknown, "", "panicked: boom"},
		"other arguments":    {Found, nil, false, `{"orders":"42"}`, Unknown, "", "orders"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			tool := newFunc(t, agent.ClassIdempotent, WithReconcile(func(_ context.Context, got Call, in payIn) (Finding, receipt, error) {
				if c.panics {
					panic("boom")
				}
				if got.Key != key {
					t.Errorf("key %q", got.Key)
				}
				return c.finding, receipt{"re_" + in.Order}, c.err
			}))
			r, ok := AsReconciler(tool)
			if !ok {
				t.Fatal("the tool cannot be asked")
			}
			f, res, err := r.Reconcile(t.Context(), Call{Key: key, Args: c.args})
			if f != c.want || string(res.Data) != c.data || (c.wantFail == "") != (err == nil) ||
				err != nil && !strings.Contains(err.Error(), c.wantFail) {
				t.Errorf("%s, %q, %v", f, res.Data, err)
			}
		})
	}
}

func TestAFunctionSaysWhatStateTheTargetIsInAndStopsACall(t *testing.T) {
	t.Parallel()
	tool := newFunc(t, agent.ClassOnce,
		WithObserve(func(_ context.Context, _ Call, in payIn) (map[string]json.Number, error) {
			if in.Order == "none" {
				return nil, errors.New("no such order")
			}
			return map[string]json.Number{"total": in.Amount}, nil
		}),
		WithCancel(func(_ context.Context, c Call) error {
			if c.Key != key {
				panic(c.Key)
			}
			return nil
		}))
	o, _ := AsObserver(tool)
	if r, err := o.Observe(t.Context(), Call{Args: `{"amount":9007199254740993.10,"order":"42"}`}); err != nil || string(r.Data) != `{"total":9007199254740993.10}` {
		t.Errorf("%q, %v", r.Data, err)
	}
	if _, err := o.Observe(t.Context(), Call{Args: `{"order":"none"}`}); err == nil {
		t.Error("no error")
	}
	c, _ := AsCanceller(tool)
	if err := c.Cancel(t.Context(), Call{Key: key}); err != nil {
		t.Error(err)
	}
	if err := c.Cancel(t.Context(), Call{Key: "another"}); err == nil || !strings.Contains(err.Error(), "panicked: another") {
		t.Errorf("error %v", err)
	}
}

func TestOptionsThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	type other struct{ A string }
	asks := WithReconcile(func(context.Context, Call, payIn) (Finding, string, error) { return Absent, "", nil })
	for want, c := range map[string]struct {
		spec Spec
		opts []Option
	}{
		"the function of its WithReconcile a tool.other": {Spec{}, []Option{WithReconcile(func(context.Context, Call, other) (Finding, string, error) { return Absent, "", nil })}},
		"the function of its WithObserve a tool.other":   {Spec{}, []Option{WithObserve(func(context.Context, Call, other) (string, error) { return "", nil })}},
		"its class is reconcilable":                      {Spec{Class: agent.ClassReconcilable}, nil},
		"it only reads":                                  {Spec{Class: agent.ClassRead}, []Option{asks}},
	} {
		c.spec.Name = "pay"
		if _, err := New(c.spec, pay, c.opts...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestASetTakesNoReconcilableToolThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	s := declared(t, Spec{Name: "pay", Class: agent.ClassReconcilable})
	if _, err := NewSet(s); err == nil || !strings.Contains(err.Error(), "its class is reconcilable") {
		t.Errorf("error %v", err)
	}
	if _, err := NewSet(byHand{s}); err != nil {
		t.Error(err)
	}
}
