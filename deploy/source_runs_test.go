package deploy

import (
	"context"
	"errors"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
)

func TestAQueryIsNarrowedToOurTypes(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]string{
		"":    "(WorkflowType = 'Session' OR WorkflowType = 'Turn') AND (ExecutionStatus = 'Running')",
		" \n": "(WorkflowType = 'Session' OR WorkflowType = 'Turn') AND (ExecutionStatus = 'Running')",
		`HoldfastStatus="waiting" OR HoldfastStatus="idle"`: `(WorkflowType = 'Session' OR WorkflowType = 'Turn') AND (HoldfastStatus="waiting" OR HoldfastStatus="idle")`,
		`A = ")" AND (B = 'it\'s)')`:                        `(WorkflowType = 'Session' OR WorkflowType = 'Turn') AND (A = ")" AND (B = 'it\'s)'))`,
	} {
		f := &fakeServer{}
		if _, err := f.gate().Runs(context.Background(), query, nil); err != nil || len(f.queries) != 1 || f.queries[0] != want {
			t.Errorf("%q: %v, asked for %q, want %q", query, err, f.queries, want)
		}
	}
}

func TestAQueryThatCannotBeAskedSaysWhy(t *testing.T) {
	t.Parallel()
	f := &fakeServer{listing: func() error { return serviceerror.NewInvalidArgument("invalid query: unexpected token near foo") }}
	for query, want := range map[string]string{
		"foo foo":          "unexpected token near foo",
		"A = 1) OR (1 = 1": "a parenthesis is closed that was not opened",
		"(A = 1":           "a parenthesis is not closed",
		`A = "x`:           "a quotation mark \" is not closed",
		`A = 'x\'`:         "a quotation mark ' is not closed",
	} {
		_, err := f.gate().Runs(context.Background(), query, nil)
		var bad *QueryError
		if !errors.As(err, &bad) || bad.Query != query || !strings.HasPrefix(bad.Reason, want) {
			t.Errorf("%q: error %v, want %q", query, err, want)
		}
	}
}

// FuzzRestrict holds that nothing in a query reaches out of the parentheses around it.
func FuzzRestrict(f *testing.F) {
	for _, query := range []string{"", "A = 1", "(A)", ")(", `"`, `'\''`, "`)`", `A = "a'b" AND (B)`} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		got, err := restrict(query)
		if err == nil && (!strings.HasPrefix(got, isOurs+" AND (") || unbalanced(got) != "") {
			t.Errorf("%q became %q", query, got)
		}
	})
}

// A server that heard another query must not make this build judge the runs of others.
func TestRunsOfOtherTypesAreLeftAlone(t *testing.T) {
	t.Parallel()
	f := &fakeServer{}
	f.add(t, "turn-done", statusRunning)
	f.add(t, "turn-approved", statusRunning).Type = &commonpb.WorkflowType{Name: "Order"}
	r, err := f.gate().Runs(context.Background(), "", nil)
	if err != nil || !r.OK() || r.Total != 1 {
		t.Errorf("%v, %+v", err, r)
	}
}
