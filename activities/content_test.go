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
	got, _, err := w.Log.Texts(t.Context(), w.scope, []transcript.Entry{{Body: res.Body}})
	if err != nil || len(got[0]) < 5000 || strings.Contains(got[0], hush) {
		t.Errorf("%.100q, %v: want all of it without the secret", got, err)
	}
	if n := w.Store.Stats().Reads - before; n != 0 {
		t.Errorf("read %d objects for a result that this worker has just stored", n)
	}
}
