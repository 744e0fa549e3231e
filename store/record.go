package store

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// A Dispatch records that an effect may have been sent. It is created just before the first byte leaves and
// never changed.
type Dispatch struct {
	Key     string `json:"key"`
	Attempt int    `json:"attempt"`
	// Token is unique to the attempt that wrote the record, so that an attempt recognises its own
	// after the answer to its create was lost.
	Token   string        `json:"token"`
	Verdict agent.Verdict `json:"verdict,omitzero"`
	Class   agent.Class   `json:"class,omitempty"`
	Action  agent.Digest  `json:"action,omitempty"`
	// Tool and Intent are for whoever has nothing left of the turn but this.
	Tool   string    `json:"tool,omitempty"`
	Intent string    `json:"intent,omitempty"`
	At     time.Time `json:"at,omitzero"`
	// SendBy is the last moment at which the attempt sends: absence at the destination proves
	// nothing before it.
	SendBy time.Time `json:"sendBy,omitzero"`
	// Revoked says that nothing was sent and nothing will be: reconciliation claimed the key.
	Revoked bool `json:"revoked,omitempty"`
	// Args is the canonical text of the arguments, which asking the destination and undoing the effect need.
	Args string `json:"args,omitempty"`
	// Undoes is the key of the effect that this one compensates.
	Undoes string `json:"undoes,omitempty"`
	// Grant is what people decided, nil when policy allowed the action by itself.
	Grant *agent.Grant `json:"grant,omitempty"`
}

// A Result is the final word on a key: of a tool or of a model, never both.
type Result struct {
	Key   string            `json:"key"`
	Tool  *agent.ToolResult `json:"tool,omitempty"`
	Model *ModelRecord      `json:"model,omitempty"`
	// Version is the tool's whole one, and Policy is of the policy in force; for a model's result see [ModelRecord].
	Version agent.Digest `json:"version,omitempty"`
	Policy  agent.Digest `json:"policy,omitempty"`
}

// A ModelRecord is a model's answer as it was accepted.
type ModelRecord struct {
	Result agent.ModelResult `json:"result"`
	// The whole digests of what the result names by 16 digits.
	Prompt agent.Digest `json:"prompt,omitempty"`
	Tools  agent.Digest `json:"tools,omitempty"`
	Policy agent.Digest `json:"policy,omitempty"`
}

// CreateDispatch records d unless its key has a dispatch record. First says that the record that stands is
// d's: it was created now, or an earlier create of the same token had succeeded without being heard of.
// Whoever is not first must not send before it has found out what became of the standing attempt. A
// standing record that cannot be trusted is ErrDamaged or ErrSeal: something may have been sent.
func (s *Space) CreateDispatch(ctx context.Context, d Dispatch) (first bool, standing Dispatch, err error) {
	if d.Key == "" || d.Token == "" {
		return false, Dispatch{}, fmt.Errorf("dispatch of key %q: key and token are needed", d.Key)
	}
	b, err := json.Marshal(d)
	if err != nil {
		return false, Dispatch{}, err
	}
	created, existing, err := s.Create(ctx, KindDispatches, d.Key, b)
	if created {
		return true, d, nil
	}
	if err == nil {
		standing, err = decode(existing, d.Key, func(v Dispatch) string { return v.Key })
	} else if standing, e := s.Dispatch(ctx, d.Key); e == nil && standing.Token == d.Token {
		return true, standing, nil // written, although the create failed
	}
	if err != nil {
		return false, Dispatch{}, err
	}
	return standing.Token == d.Token, standing, nil
}

// Dispatch returns the dispatch record of a key: ErrAbsent, ErrDamaged, ErrSeal.
func (s *Space) Dispatch(ctx context.Context, key string) (Dispatch, error) {
	b, err := s.Get(ctx, KindDispatches, key)
	if err != nil {
		return Dispatch{}, err
	}
	return decode(b, key, func(v Dispatch) string { return v.Key })
}

// CreateResult records r unless its key has a result. First says that the standing record is equal to r.
// Whoever is not first adopts the standing one.
func (s *Space) CreateResult(ctx context.Context, r Result) (first bool, standing Result, err error) {
	if r.Key == "" || (r.Tool == nil) == (r.Model == nil) {
		return false, Result{}, fmt.Errorf("result of key %q: want a key and either a tool's or a model's result", r.Key)
	}
	b, err := json.Marshal(r)
	if err != nil {
		return false, Result{}, err
	}
	created, existing, err := s.Create(ctx, KindResults, r.Key, b)
	if created {
		return true, r, nil
	}
	if err != nil {
		return false, Result{}, err
	}
	standing, err = decodeResult(existing, r.Key)
	return err == nil && bytes.Equal(existing, b), standing, err
}

// Result returns the result record of a key: ErrAbsent, ErrDamaged, ErrSeal.
func (s *Space) Result(ctx context.Context, key string) (Result, error) {
	b, err := s.Get(ctx, KindResults, key)
	if err != nil {
		return Result{}, err
	}
	return decodeResult(b, key)
}

func decodeResult(b []byte, key string) (Result, error) {
	r, err := decode(b, key, func(v Result) string { return v.Key })
	if err == nil && (r.Tool == nil) == (r.Model == nil) {
		return Result{}, fmt.Errorf("result of key %q holds not one result: %w", key, ErrDamaged)
	}
	return r, err
}

// decode reads a record and holds it against the key that it was asked for. Members that this build does
// not know are left alone: a newer build wrote them.
func decode[T any](b []byte, key string, of func(T) string) (T, error) {
	var v, none T
	if err := json.Unmarshal(b, &v); err != nil {
		return none, fmt.Errorf("record of key %q: %w: %w", key, err, ErrDamaged)
	}
	if of(v) != key {
		return none, fmt.Errorf("record of key %q names key %.200q: %w", key, of(v), ErrDamaged)
	}
	return v, nil
}

// CreateClosing records how a turn, or a late compensation, ended and returns the digest of the record that
// stands: an earlier one wins. See [ClosingName].
func (s *Space) CreateClosing(ctx context.Context, name string, b []byte) (agent.Digest, error) {
	created, existing, err := s.Create(ctx, KindClosings, name, b)
	if err != nil {
		return "", err
	}
	if created {
		return agent.DigestOf(b), nil
	}
	return agent.DigestOf(existing), nil
}

// Closing returns the closing record of that name: ErrAbsent, ErrDamaged, ErrSeal.
func (s *Space) Closing(ctx context.Context, name string) ([]byte, error) {
	return s.Get(ctx, KindClosings, name)
}

// ForkName is the name of the record, among the closing records of a session that was forked from another one, that says
// where it began.
const ForkName = "fork"

// ClosingName returns the name of a turn's closing record: "turn-<n>"; of its m-th late compensation's, counted
// from 1: "turn-<n>-undo-<m>".
func ClosingName(turn, undo int) string {
	name := "turn-" + strconv.Itoa(turn)
	if undo > 0 {
		name += "-undo-" + strconv.Itoa(undo)
	}
	return name
}
