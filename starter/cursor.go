package starter

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

// A position is the last event that was seen of one run of a workflow.
type position struct {
	Workflow string `json:"w"`
	Run      string `json:"r"`
	Event    int64  `json:"e"`
}

// A cursor says how far the followed workflows have been seen. Its text form is for the shell: JSON in
// base64url.
type cursor []position

const (
	maxCursorText      = 4096
	maxCursorPositions = 8
	maxWorkflowID      = 1000 // Temporal's own limit
)

func (c cursor) String() string {
	b, err := json.Marshal([]position(c))
	if err != nil {
		return "" // strings and numbers always marshal
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// MarshalText makes the JSON form of a cursor its text form.
func (c cursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

var errCursor = errors.New("copy it whole from what watch or -o json printed")

// parseCursor reads a cursor and checks that it belongs to the session.
func parseCursor(s, session string) (cursor, error) {
	if len(s) > maxCursorText {
		return nil, fmt.Errorf("cursor of %d bytes is too long: %w", len(s), errCursor)
	}
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		return nil, fmt.Errorf("%q is no cursor: %w", line(s, 40), errCursor)
	}
	var c cursor
	if err := json.Unmarshal(b, (*[]position)(&c)); err != nil || len(c) == 0 || len(c) > maxCursorPositions {
		return nil, fmt.Errorf("%q is no cursor: %w", line(s, 40), errCursor)
	}
	for _, p := range c {
		if p.Workflow == "" || len(p.Workflow) > maxWorkflowID || p.Run == "" || len(p.Run) > maxWorkflowID || p.Event < 0 {
			return nil, fmt.Errorf("%q is no cursor: %w", line(s, 40), errCursor)
		}
		owner := p.Workflow
		if at, err := parseAddress(p.Workflow); err == nil {
			owner = at.session
		}
		if owner != session {
			return nil, fmt.Errorf("cursor belongs to session %q, not to %q", line(owner, 80), session)
		}
	}
	return c, nil
}

// of returns the position in a workflow.
func (c cursor) of(workflow string) (position, bool) {
	for _, p := range c {
		if p.Workflow == workflow {
			return p, true
		}
	}
	return position{}, false
}

// place returns the turn, or the late compensation, that the cursor is in; without a turn it is in the session only.
func (c cursor) place() address {
	for _, p := range c {
		if at, err := parseAddress(p.Workflow); err == nil && at.turn != 0 {
			return at
		}
	}
	return address{}
}

// turn returns the turn that the cursor is in, or 0.
func (c cursor) turn() int {
	if at := c.place(); at.undo == 0 {
		return at.turn
	}
	return 0
}
