package activities

import (
	"context"
	"strings"
	"testing"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/transcript"
)

func TestTheModelHearsAResultWithoutReadingItBackFromTheStore(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("long ", 1000) + hush
	w := newWorld(t, "mem://", newFake(t, spec(agent.ClassRead), func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Data: []byte(text)}, nil
	}))
	res := w.mustAttempt(1, w.asked("pay", `{}`))
	before := w.Store.Stats().Reads
	got, err := w.Log.Text(t.Context(), w.scope, transcript.Entry{Body: res.Body})
	if err != nil || len(got) < 5000 || strings.Contains(got, hush) {
		t.Errorf("%d bytes, %v, with the secret: %v", len(got), err, strings.Contains(got, hush))
	}
	if n := w.Store.Stats().Reads - before; n != 0 {
		t.Errorf("read %d objects for a result that this worker has just stored", n)
	}
}
