package witness

import (
	"context"
	"fmt"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/transcript"
)

// said reads what the transcript has of a turn: what stands between the head that it began with and the one that it
// ended with.
func (h *hearing) said(ctx context.Context, t *Turn, from, to agent.Head) error {
	before, err := h.log.Read(ctx, h.scope, from)
	if err != nil {
		return fmt.Errorf("the transcript before it: %w", err)
	}
	all, err := h.log.Read(ctx, h.scope, to)
	if err != nil {
		return fmt.Errorf("its transcript: %w", err)
	}
	entries := all.Entries[min(len(before.Entries), len(all.Entries)):]
	texts, _, err := h.log.Texts(ctx, h.scope, entries)
	if err != nil {
		return fmt.Errorf("its transcript: %w", err)
	}
	t.tell(entries, texts)
	return nil
}

// tell notes the entries of a turn. Each answer of the model is a step, and the results that follow it are of the calls
// in it.
func (t *Turn) tell(entries []transcript.Entry, texts []string) {
	step := 0
	var asked []transcript.Call
	for i, e := range entries {
		t.Said = append(t.Said, fmt.Sprintf("%s: %s", e.Role, texts[i]))
		switch e.Role {
		case agent.RoleAssistant:
			step++
			asked = e.Calls
		case agent.RoleTool:
			for n, c := range asked {
				if c.ID == e.Call {
					t.Heard = append(t.Heard, Heard{step, n + 1, c.Name, texts[i]})
				}
			}
		}
	}
}

// whole counts what is missing of the transcript as it stands now.
func (h *hearing) whole(ctx context.Context) error {
	all, err := h.log.Read(ctx, h.scope, h.session.Head)
	if err != nil {
		return fmt.Errorf("the transcript: %w", err)
	}
	_, lost, err := h.log.Texts(ctx, h.scope, all.Entries)
	if err != nil {
		return fmt.Errorf("the transcript: %w", err)
	}
	h.gaps += len(all.Gaps) + len(lost)
	return nil
}
