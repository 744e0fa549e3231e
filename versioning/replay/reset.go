package replay

import (
	"encoding/json"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
)

// A reset run begins with the events of a run that it discards, up to a workflow task that is made to fail. To its
// code, that is its own history: it is replayed under the new run's id and knows of the reset from the start.
type reset struct {
	run   string // of the run that the latest reset made, "" if there was none
	first int64  // the event of the first reset, 0 if there was none
}

func resetOf(h *historypb.History) (r reset) {
	for _, e := range h.GetEvents() {
		a := e.GetWorkflowTaskFailedEventAttributes()
		if a.GetCause() != enumspb.WORKFLOW_TASK_FAILED_CAUSE_RESET_WORKFLOW {
			continue
		}
		r.run = a.GetNewRunId()
		if r.first == 0 {
			r.first = e.GetEventId()
		}
	}
	return r
}

// memberReset is what inputs say about it: agent.ToolInput.
const memberReset = "reset"

// forget drops from an activity's input that the run was reset, if it was asked for before that happened. Nothing
// can have come of it there: the server answers from history.
func (r reset) forget(c command) command {
	if c.kind != kindActivity || c.task >= r.first {
		return c
	}
	var input map[string]json.RawMessage
	fields := append([]field(nil), c.fields...)
	for i, f := range fields {
		if f.name != fieldInput || json.Unmarshal([]byte(f.value), &input) != nil {
			continue
		}
		delete(input, memberReset)
		if b, err := json.Marshal(input); err == nil {
			fields[i].value = string(b)
		}
	}
	c.fields = fields
	return c
}
