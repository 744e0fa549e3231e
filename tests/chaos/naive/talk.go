package naive

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// How a conversation stands.
const (
	done   = "done"
	failed = "failed"
	stuck  = "stuck" // a turn has not ended in time
)

// talk has the user say what it says, one turn after the other, and a person approve what waits.
func (d *drive) talk(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var conversation []openai.Message
	for n, text := range d.scene.Says {
		id := fmt.Sprintf("%s-%d", d.world.Session, n+1)
		conversation = append(conversation, openai.Message{Role: openai.RoleUser, Text: text})
		if insist(ctx, func(ctx context.Context) error { return d.begin(ctx, id, conversation) }) != nil {
			return stuck
		}
		if status := d.follow(ctx, id); status != done {
			return status
		}
		conversation = nil
		if insist(ctx, func(ctx context.Context) error {
			return d.world.Server.Client().GetWorkflow(ctx, id, "").Get(ctx, &conversation)
		}) != nil {
			return stuck
		}
	}
	return done
}

// begin starts a turn. Starting one that has been started is no error.
func (d *drive) begin(ctx context.Context, id string, conversation []openai.Message) error {
	_, err := d.world.Server.Client().ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: d.world.Queue, WorkflowTaskTimeout: cell.WorkflowTask,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
	}, workflowTurn, conversation)
	return err
}

// follow waits for a turn's end and approves what it asks for meanwhile.
func (d *drive) follow(ctx context.Context, id string) string {
	told := map[string]bool{"": true}
	for {
		status, call := d.look(ctx, id)
		switch {
		case status == enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
			return done
		case status > enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
			return failed
		case !told[call]:
			told[call] = true
			if d.word(ctx, id, call) != nil {
				return stuck
			}
		}
		if pause(ctx, 100*time.Millisecond) != nil {
			return stuck
		}
	}
}

// look returns how a turn stands, 0 when nobody can say so now, and the id of the call that waits for a person, if one
// does. Nobody is asked for that while the turn has something to do.
func (d *drive) look(ctx context.Context, id string) (status enumspb.WorkflowExecutionStatus, call string) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	c := d.world.Server.Client()
	all, err := c.DescribeWorkflow(ctx, id, "")
	if err != nil {
		return 0, ""
	}
	if status = all.Status; status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING &&
		len(all.RawResponse.GetPendingActivities()) == 0 && all.RawResponse.GetPendingWorkflowTask() == nil {
		if v, err := c.QueryWorkflow(ctx, id, "", queryPending); err == nil {
			_ = v.Get(&call) // what cannot be read is nothing to decide on
		}
	}
	return status, call
}

// word approves a call, in the way of the cell's Word.
func (d *drive) word(ctx context.Context, turn, call string) error {
	words := []approval{{call, true}}
	switch f := d.fault(cell.Word); f.Arg {
	case "duplicate":
		words = append(words, words[0], words[0])
	case "delayed":
		if err := pause(ctx, 4*time.Second); err != nil {
			return err
		}
	case "wrong":
		words = append(forgeries(call, 1), words...)
	case "crowd":
		words = append(forgeries(call, 40), words...)
	}
	for _, w := range words {
		err := insist(ctx, func(ctx context.Context) error {
			err := d.world.Server.Client().SignalWorkflow(ctx, turn, "", signalApproval, w)
			var gone *serviceerror.NotFound
			if errors.As(err, &gone) {
				return nil // the turn has ended
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forgeries are words that must not count: on another call, by somebody else, changed on their way. The loop can tell
// only the first of them.
func forgeries(call string, n int) []approval {
	var out []approval
	for i := range n {
		out = append(out, []approval{{"another call", true}, {call, true}, {call, false}}[i%3])
	}
	return out
}

// insist tries until it succeeds, or ctx ends.
func insist(ctx context.Context, f func(context.Context) error) error {
	for {
		once, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := f(once)
		cancel()
		if err == nil {
			return nil
		}
		if ended := pause(ctx, 100*time.Millisecond); ended != nil {
			return errors.Join(err, ended)
		}
	}
}

func pause(ctx context.Context, span time.Duration) error {
	select {
	case <-time.After(span):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
