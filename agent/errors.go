package agent

// Error types. Only ApplicationError.Type survives the trip through Temporal, so they are strings. Each is
// also a Reason.Type.
const (
	// Of a model call. The first five are tried again until the model's call timeout has run out.
	ErrRateLimit      = "rate_limit"
	ErrOverloaded     = "overloaded"
	ErrModelTimeout   = "model_timeout"
	ErrStreamCut      = "stream_cut"
	ErrUnreachable    = "model_unreachable"
	ErrBadAnswer      = "bad_answer"  // HTML, no choices, an undecodable body; tried again a few times
	ErrBadRequest     = "bad_request" // the provider refuses what we sent: never tried again unchanged
	ErrContextLength  = "context_length"
	ErrAuthentication = "authentication"
	ErrQuota          = "quota"
	ErrContentFilter  = "content_filter"
	ErrRefusal        = "refusal"

	// Of a tool call that is tried again.
	ErrTool = "tool"

	// Of a turn.
	ErrUnknownAgent = "unknown_agent"
	ErrLimit        = "limit" // limits used up and nobody extended them
	ErrBudget       = "budget_exhausted"
	ErrFaults       = "faults"       // the model kept asking for what cannot be run
	ErrNotEntitled  = "not_entitled" // who ordered it may not
	ErrCancelled    = "cancelled"
	ErrTerminated   = "terminated" // somebody terminated the turn; its end was recovered

	// Of a session that is to begin as a fork.
	ErrFork = "no_fork" // there is no such place to begin at

	// Of a worker that cannot take the work; another one may. Tried again.
	ErrWrongStore  = "wrong_store"
	ErrStaleConfig = "stale_config" // its configuration's serial is below one that the turn has seen
	ErrStore       = "store"        // the store cannot be read or written

	// Of the update "send".
	ErrClosed        = "session_closed"
	ErrQueueFull     = "queue_full"
	ErrMessage       = "bad_message"
	ErrMessageReused = "message_id_reused"

	// Of a defect of ours, never of bad input.
	ErrInternal = "internal"
)
