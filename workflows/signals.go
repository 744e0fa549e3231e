package workflows

import "go.temporal.io/sdk/workflow"

// listen hands each signal of that name to take, in a coroutine of its own, for as long as the run lives. One
// whose payload cannot be decoded is passed over by the SDK, with a line in the log.
//
// It does not wait in Receive: a signal that meets a waiting Receive is in that coroutine's hands from then on, and a
// run that ends before the coroutine's turn comes would lose it, where no drain finds it.
func listen[T any](ctx workflow.Context, name string, take func(workflow.Context, T)) {
	workflow.Go(ctx, func(ctx workflow.Context) {
		ch := workflow.GetSignalChannel(ctx, name)
		always, _ := workflow.NewDisconnectedContext(ctx) // a cancelled run takes signals too
		for workflow.Await(always, func() bool { return ch.Len() > 0 }) == nil {
			var v T // a new one each time: a decoder leaves alone what a payload does not name
			if ch.ReceiveAsync(&v) {
				take(ctx, v)
			}
		}
	})
}

// arrived hands every signal of that name that is there to take, and waits for none.
func arrived[T any](ctx workflow.Context, name string, take func(T)) {
	ch := workflow.GetSignalChannel(ctx, name)
	for {
		var v T
		if !ch.ReceiveAsync(&v) {
			return
		}
		take(v)
	}
}
