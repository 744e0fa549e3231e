package workflows

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
)

// maxInbox bounds the signals that wait to be looked into: each that passes the cheap checks costs an activity.
const maxInbox = 100

// A letter is a signal that passed the cheap checks and waits to be looked into.
type letter[T any] struct {
	Body T `json:"body"`
	// Run is the run whose history has the signal, for whoever asks the server when it came.
	Run string `json:"run"`
}

// An inbox takes signals of one kind in the order in which they came. Cheap checks come first and cost nothing but
// the signal's own event; what passes is worked on one after the other, so that the order of what came is the
// order of what counts.
type inbox[T any] struct {
	letters *[]letter[T] // in the run's state: carried by continue-as-new
	busy    bool         // one is being worked on
	leaving *bool        // the run is about to end: what is left is the next one's
	// check says whether a payload is worth an activity; it refuses what is not.
	check func(payload []byte) (T, bool)
	work  func(ctx workflow.Context, l letter[T])
}

// open starts to take signals of that name. Payloads are taken as they are: the SDK would pass over one that it
// cannot decode with no more than a line in the log.
func (b *inbox[T]) open(ctx workflow.Context, name string) {
	// What has been said is looked into also when the run is cancelled; it ends when that is done.
	ctx, _ = workflow.NewDisconnectedContext(ctx)
	listen(ctx, name, func(ctx workflow.Context, raw converter.RawValue) { b.put(ctx, raw) })
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			if workflow.Await(ctx, func() bool { return len(*b.letters) > 0 && !*b.leaving }) != nil {
				return
			}
			b.busy = true
			l := (*b.letters)[0]
			*b.letters = (*b.letters)[1:]
			b.work(ctx, l)
			b.busy = false
		}
	})
}

// drain takes what has arrived and is not taken yet, for the next run to work on.
func (b *inbox[T]) drain(ctx workflow.Context, name string) {
	arrived(ctx, name, func(raw converter.RawValue) { b.put(ctx, raw) })
}

func (b *inbox[T]) put(ctx workflow.Context, raw converter.RawValue) {
	if body, ok := b.check(raw.Payload().GetData()); ok {
		*b.letters = append(*b.letters, letter[T]{body, workflow.GetInfo(ctx).WorkflowExecution.RunID})
	}
}

// idle says that nothing is being worked on and nothing waits for it.
func (b *inbox[T]) idle() bool { return !b.busy && len(*b.letters) == 0 }

// pending says whether a letter that match accepts waits or is being worked on.
func (b *inbox[T]) pending(match func(T) bool) bool {
	if b.busy {
		return true
	}
	for _, l := range *b.letters {
		if match(l.Body) {
			return true
		}
	}
	return false
}

// refusalOf is what a signal is refused with.
func refusalOf(ctx workflow.Context, id, choice, approver, ref, why string) agent.Refusal {
	return agent.Refusal{ID: id, Choice: choice, Approver: approver, Ref: ref, Why: why, At: workflow.Now(ctx)}
}
