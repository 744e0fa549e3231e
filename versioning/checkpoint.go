package versioning

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// An Upgrade turns the state of one schema into that of the next.
type Upgrade func(state json.RawMessage) (json.RawMessage, error)

// Same is the upgrade to a schema that only has further fields, which begin empty.
func Same(state json.RawMessage) (json.RawMessage, error) { return state, nil }

// A CheckpointError says why a checkpoint cannot be taken by this build. The run that holds it stays open
// and is tried again, so that a worker that can take it will.
type CheckpointError struct {
	Schema int
	Why    string
}

func (e *CheckpointError) Error() string {
	return fmt.Sprintf("checkpoint of schema %d refused: %s", e.Schema, e.Why)
}

// RefusesCheckpoint says whether a text is that of a [CheckpointError], or quotes it: of the error with which a workflow
// task failed the server keeps no more than its text.
func RefusesCheckpoint(text string) bool {
	return strings.Contains(text, "checkpoint of schema ") && strings.Contains(text, " refused: ")
}

// Seal makes a checkpoint of state in the given schema. It is deterministic as far as state's JSON form is:
// maps are written in key order.
func Seal(schema int, state any) (*agent.Checkpoint, error) {
	b, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("state of schema %d has no JSON form: %w", schema, err)
	}
	return &agent.Checkpoint{Schema: schema, State: string(b), Digest: checksum(schema, b)}, nil
}

// Open checks a checkpoint and decodes its state into v, upgrading it from older schemas: upgrades[i] turns
// schema i+1 into i+2, so the current schema is len(upgrades)+1. Errors are of type [*CheckpointError].
func Open(c *agent.Checkpoint, upgrades []Upgrade, v any) error {
	current := len(upgrades) + 1
	refuse := func(format string, args ...any) error {
		return &CheckpointError{Schema: c.Schema, Why: fmt.Sprintf(format, args...)}
	}
	if c.Schema < 1 || c.Schema > current {
		return refuse("this build knows schemas 1 to %d; a worker of a newer build has to take this run", current)
	}
	state := json.RawMessage(c.State)
	if want := checksum(c.Schema, state); c.Digest != want {
		return refuse("its digest is %.16s and its bytes have %.16s: it was altered", c.Digest, want)
	}
	for i := c.Schema; i < current; i++ {
		next, err := upgrades[i-1](state)
		if err != nil {
			return refuse("upgrade to schema %d failed: %v", i+1, err)
		}
		state = next
	}
	// An unknown field would be dropped silently by the next checkpoint.
	d := json.NewDecoder(bytes.NewReader(state))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return refuse("%v", err)
	}
	return nil
}

func checksum(schema int, state []byte) agent.Digest {
	return agent.DigestOf(append([]byte(strconv.Itoa(schema)+"\n"), state...))
}
