package activities

import (
	"bytes"
	"context"
	"unicode/utf8"

	"github.com/holdfast-run/holdfast/agent"
)

const (
	// maxPreview bounds in bytes what history shows of a result that is in the store: enough for a
	// person to recognise it by, in every step's events.
	maxPreview = 48
	// maxWords bounds in bytes what is said about a result or its producer.
	maxWords = 160
)

// A content is what a tool gave back, as it goes into a [agent.ToolResult].
type content struct {
	text string
	body *agent.Body
}

// keepContent masks what the tool gave back and puts it into the store unless it is short text.
func (r *toolRun) keepContent(data []byte, mediaType string) (content, error) {
	data = r.snap.Mask.Bytes(data)
	readable := textual(mediaType) && utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
	if readable && len(data) <= agent.InlineText {
		return content{text: string(data)}, nil
	}
	if !readable && textual(mediaType) {
		mediaType = "application/octet-stream" // whatever it was called
	}
	body, err := persist(r.ctx, func(ctx context.Context) (agent.Body, error) {
		if readable { // the next model call wants it
			return r.Log.PutText(ctx, r.in.Scope, string(data), mediaType)
		}
		return r.space.PutBody(ctx, data, mediaType)
	})
	if err != nil {
		return content{text: unkept(data, readable)}, err
	}
	if !readable {
		return content{text: describe(body), body: &body}, nil
	}
	return content{text: head(string(data), maxPreview), body: &body}, nil
}

// unkept is what is left of a result that the store did not take.
func unkept(data []byte, readable bool) string {
	if !readable {
		return "[a binary result that could not be stored]"
	}
	return head(string(data), maxPreview) + "\n[... the rest of the result could not be stored ...]"
}
