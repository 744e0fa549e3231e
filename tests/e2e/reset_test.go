package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// TestAResetRepeatsNoEffect resets a finished turn to each end of a workflow task, with the agent as it was and
// with a tool that was edited meanwhile, which gives the same refund another key.
func TestAResetRepeatsNoEffect(t *testing.T) {
	t.Parallel()
	for _, class := range []string{"once", "idempotent"} {
		for _, edited := range []bool{false, true} {
			name := class + " as it was"
			if edited {
				name = class + " edited"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, setting{model: modeltest.Config{Func: refunds}, refund: class, timeout: "2s"})
				first := r.worker("")
				r.start("s", "Refund order 42.")
				r.ended("s", 1)
				if edited {
					first.kill() // the new one reads the new file
					r.edit("Refunds an order.", "Refunds one order.", "serial: 1", "serial: 2")
					r.worker("")
				}
				id := agent.TurnID(r.prefix+"s", 1)
				run := r.run(id)
				for _, task := range r.taskEnds(id, run) {
					r.reset(id, run, task)
					res := r.ended("s", 1)
					if res.Status != agent.StatusDone {
						t.Errorf("reset to event %d: %+v", task, res)
					}
					if n := len(r.pay.Books().Entries); n != 1 {
						t.Fatalf("reset to event %d: %d refunds", task, n)
					}
				}
			})
		}
	}
}

func (r *rig) edit(oldnew ...string) {
	r.t.Helper()
	path := filepath.Join(r.dir, "holdfast.yaml")
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.NewReplacer(oldnew...).Replace(string(b))), 0o600)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// run returns the id of a workflow's latest run.
func (r *rig) run(id string) string {
	r.t.Helper()
	d, err := r.client.DescribeWorkflow(r.t.Context(), id, "")
	if err != nil {
		r.t.Fatal(err)
	}
	return d.RawResponse.GetWorkflowExecutionInfo().GetExecution().GetRunId()
}

// taskEnds returns the events to which a run can be reset, but the last, which closes it.
func (r *rig) taskEnds(id, run string) []int64 {
	r.t.Helper()
	var ends []int64
	it := r.client.GetWorkflowHistory(r.t.Context(), id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			r.t.Fatal(err)
		}
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			ends = append(ends, e.GetEventId())
		}
	}
	return ends[:len(ends)-1]
}

func (r *rig) reset(id, run string, task int64) {
	r.t.Helper()
	_, err := r.client.WorkflowService().ResetWorkflowExecution(r.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run},
		Reason: "test", WorkflowTaskFinishEventId: task, RequestId: fmt.Sprintf("%s-%d", run, task),
	})
	if err != nil {
		r.t.Fatal(err)
	}
}
