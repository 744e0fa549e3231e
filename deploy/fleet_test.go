package deploy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	commonpb "go.temporal.io/api/common/v1"
	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/converter"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
	"github.com/holdfast-run/holdfast/worker"
)

func TestALiteralEndsWhereItShould(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"v1": `'v1'`, "it's": `'it''s'`, `a\`: `'a\\'`, `' OR 'a' = 'a`: `''' OR ''a'' = ''a'`, "": `''`,
	} {
		if got := literal(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
		if why := unbalanced("A = " + literal(in)); why != "" {
			t.Errorf("%q: %s", in, why)
		}
	}
}

func TestTheStandingOfABuild(t *testing.T) {
	t.Parallel()
	d := &Deployment{Current: "now", Ramping: "next", Percent: 10}
	drainage := func(s enumspb.VersionDrainageStatus) *deploymentpb.VersionDrainageInfo {
		return &deploymentpb.VersionDrainageInfo{Status: s}
	}
	for id, test := range map[string]struct {
		drainage *deploymentpb.VersionDrainageInfo
		want     Standing
		percent  float32
	}{
		"now":   {drainage(enumspb.VERSION_DRAINAGE_STATUS_UNSPECIFIED), Current, 0},
		"next":  {nil, Ramping, 10},
		"old":   {drainage(enumspb.VERSION_DRAINAGE_STATUS_DRAINING), Draining, 0},
		"older": {drainage(enumspb.VERSION_DRAINAGE_STATUS_DRAINED), Drained, 0},
		"new":   {nil, Inactive, 0},
	} {
		b := d.build(&deploymentpb.WorkerDeploymentInfo_WorkerDeploymentVersionSummary{
			DeploymentVersion: &deploymentpb.WorkerDeploymentVersion{BuildId: id}, DrainageInfo: test.drainage,
		})
		if b.ID != id || b.Standing != test.want || b.Percent != test.percent {
			t.Errorf("%s: %+v", id, b)
		}
	}
}

func TestErrorsNameWhatThereIsAndWhatToDo(t *testing.T) {
	t.Parallel()
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf("b%d", i)
	}
	polled := Build{ID: "v1", Polled: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for want, err := range map[string]error{
		`no worker deployment "x" (there is none); a worker makes it`: &NoDeploymentError{Deployment: "x"},
		`(there are: "a", "b\x1b")`:                                   &NoDeploymentError{Deployment: "x", Known: []string{"a", "b\x1b"}},
		`no build "v9" (it has: "v1")`:                                &NoBuildError{Deployment: "x", Build: "v9", Known: []string{"v1"}},
		`"b19", ...)`:                                                 &NoBuildError{Deployment: "x", Build: "v9", Known: many},
		`the last one did at 03:04:05 on 2026-01-02 UTC; start its workers first`: &SilentError{Build: polled},
		`the server remembers none; start its workers first`:                      &SilentError{Build: Build{ID: "v1"}},
		`(3 of type Session with number 4, 1 of type Turn with number 5)`:         &CrossedError{Build: "v1", Found: []CrossedRuns{{"Session", 4, 3}, {"Turn", 5, 1}}},
		`holdfast deploy ramp v2 --percent 0`:                                     &BusyBuildError{Build: "v2", Standing: Ramping},
		`promote another build first`:                                             &BusyBuildError{Build: "v2", Standing: Current},
		`this program is build "b" and the current build is "v2"`:                 &NotCurrentError{Current: "v2", Binary: "b"},
		`no worker of the current build "v2" polls`:                               &NotCurrentError{Current: "v2", Silent: true},
		`whether histories replay on build "v2"; use the program of that build`:   &OtherBuildError{Build: "v2", Binary: "b"},
		`no build is current`:                                                     &NotCurrentError{Binary: "b"},
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%T says %q, want %q", err, err, want)
		}
	}
}

func TestWhichErrorsEndAWait(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err                 error
		absent, final, stop bool
	}{
		{serviceerror.NewUnimplemented("unknown method"), true, true, true},
		{serviceerror.NewPermissionDenied("Worker Deployment Versions are disabled on this namespace.", ""), true, true, true},
		{serviceerror.NewPermissionDenied("Request unauthorized.", ""), false, true, true},
		{serviceerror.NewInvalidArgument("no"), false, true, true},
		{serviceerror.NewUnavailable("down"), false, false, false},
		{serviceerror.NewNotFound("gone"), false, false, false},
		{&BusyBuildError{}, false, false, true},
		{&NoDeploymentError{}, false, false, true},
		{fmt.Errorf("x: %w", ErrNoDeployments), false, false, true},
		{errors.New("other"), false, false, false},
		{nil, false, false, false},
	} {
		if isAbsent(test.err) != test.absent || isFinal(test.err) != test.final || isStop(test.err) != test.stop {
			t.Errorf("%v: absent %v, final %v, stop %v", test.err, isAbsent(test.err), isFinal(test.err), isStop(test.err))
		}
	}
}

func numbers(oldest, newest, preferred int) *worker.Table {
	n := versioning.Range{Oldest: oldest, Newest: newest, Preferred: preferred}
	return &worker.Table{Numbers: map[string]versioning.Range{agent.WorkflowSession: n, agent.WorkflowTurn: {Oldest: 1, Newest: 1, Preferred: 1}}}
}

func TestGapsBetweenBuilds(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		of, other *worker.Table
		want      []Gap
	}{
		"understands":         {numbers(1, 3, 2), numbers(1, 2, 2), nil},
		"prefers":             {numbers(1, 3, 3), numbers(1, 2, 2), []Gap{{"Session", 3, 1, 2}}},
		"back to the old one": {numbers(1, 2, 1), numbers(2, 3, 3), []Gap{{"Session", 1, 2, 3}}},
		"the same":            {numbers(1, 3, 3), numbers(1, 3, 3), nil},
		"one says nothing":    {numbers(1, 3, 3), nil, nil},
		"the other neither":   {nil, numbers(1, 2, 2), nil},
		"a type is not there": {numbers(1, 3, 3), &worker.Table{Numbers: map[string]versioning.Range{agent.WorkflowTurn: {Oldest: 1, Newest: 1, Preferred: 1}}}, nil},
	} {
		if diff := cmp.Diff(test.want, gaps(test.of, test.other)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestNumbersThatABuildDoesNotKnow(t *testing.T) {
	t.Parallel()
	own := worker.OwnTable().Numbers[agent.WorkflowSession].Newest
	d := &Deployment{Builds: []Build{{ID: "v2", Table: numbers(2, own+2, own)}}}
	var want []int
	for n := own; n <= own+2; n++ {
		want = append(want, n)
	}
	if diff := cmp.Diff(append([]int{1}, want...), d.foreign(Build{Table: numbers(2, own-1, 2)}, agent.WorkflowSession)); diff != "" {
		t.Error(diff)
	}
	if got := d.foreign(Build{}, agent.WorkflowSession); got != nil {
		t.Errorf("of a build that says nothing: %v", got)
	}
	d.Builds[0].Table = numbers(1, 1<<40, 1)
	if got := d.foreign(Build{Table: numbers(1, 1, 1)}, agent.WorkflowSession); len(got) >= maxNumber {
		t.Errorf("a foreign table makes us ask for %d numbers", len(got))
	}
}

// run is one as a list has it.
func run(t *testing.T, kind, id string, attributes map[string]any) *workflowpb.WorkflowExecutionInfo {
	t.Helper()
	fields := map[string]*commonpb.Payload{}
	for name, v := range attributes {
		p, err := converter.GetDefaultDataConverter().ToPayload(v)
		if err != nil {
			t.Fatal(err)
		}
		fields[name] = p
	}
	return &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: "run-" + id}, Type: &commonpb.WorkflowType{Name: kind},
		SearchAttributes: &commonpb.SearchAttributes{IndexedFields: fields},
	}
}

func TestWhatABuildCannotTake(t *testing.T) {
	t.Parallel()
	b := Build{ID: "v1", Table: numbers(2, 3, 2)}
	for _, test := range []struct {
		changes any
		number  int
		taken   bool
	}{
		{[]string{"other-9", "holdfast-Session-3"}, 3, true},
		{[]string{"holdfast-Session-4"}, 4, false},
		{[]string{"holdfast-Session-1"}, 1, false},
		{[]string{"holdfast-Session-x", "holdfast-Session-", "holdfast-Session-3x"}, 0, true},
		{[]string{"holdfast-Turn-9"}, 0, true}, // another type's
		{7, 0, true},
		{nil, 0, true},
	} {
		r := run(t, agent.WorkflowSession, "s", map[string]any{attributeChanges: test.changes})
		if changeOf(r) != test.number || (b.cannotTake(r) == nil) != test.taken {
			t.Errorf("%v: number %d, %v", test.changes, changeOf(r), b.cannotTake(r))
		}
		if err := (Build{}).cannotTake(r); err != nil {
			t.Errorf("a build that says nothing: %v", err)
		}
	}
}
