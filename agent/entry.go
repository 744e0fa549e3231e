package agent

import "time"

// A Role says who speaks in an [Entry].
type Role string

// The roles of a conversation.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
	// RoleNotice is something the worker tells the model: that it was cut off, that a message was
	// withdrawn. It is sent to the provider as a user message that says so.
	RoleNotice Role = "notice"
)

// InlineText is the longest message that starts a turn and the longest tool result, in bytes, that travels
// through history inside an entry. Longer ones go to the store and are named by their digest, so that a step
// leaves a constant in history. What steers a running turn (up to [MaxMessage]) and why a call was refused
// stand whole in their entries.
const InlineText = 256

// An Entry is something said that the transcript does not hold yet: it goes from the workflow to the
// model activity, which appends it. Text holds all of it when Body is nil.
type Entry struct {
	Role Role   `json:"role"`
	Call string `json:"call,omitempty"` // RoleTool: the provider's id of the call that this answers
	Text string `json:"text,omitempty"`
	Body *Body  `json:"body,omitempty"`
}

// A Body names bytes in the session's part of the store.
type Body struct {
	Digest Digest `json:"digest"`
	Size   int64  `json:"size"` // bytes
	// Type is the media type; empty means text/plain in UTF-8.
	Type string `json:"type,omitempty"`
}

// A Head names the end of a transcript: how many segments it has and the chained digest of the last. The
// zero Head is the empty transcript.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash Digest `json:"hash,omitempty"`
}

// A Message is what a person or program sends to a session. Its text stands in the event that accepted
// it.
type Message struct {
	// ID makes sending idempotent: the session remembers the last 1,000.
	ID   string `json:"id"`
	Text string `json:"text"`
	// From is who sent it: proved by Signature, else only claimed.
	From string `json:"from,omitempty"`
	// Time is when it was signed; Signature is an armored SSHSIG of the canonical message.
	Time      time.Time `json:"time,omitzero"`
	Signature string    `json:"signature,omitempty"`
	// Now steers the running turn instead of waiting for it to end.
	Now bool `json:"now,omitempty"`
}
