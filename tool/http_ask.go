package tool

// An HTTPAsk is a GET by which an HTTP tool asks about a call. It changes nothing.
type HTTPAsk struct {
	// URL is a template as that of the tool, whose arguments it may use. {key} is the idempotency key, as one
	// segment of the path, a piece of one, or a query value. An argument of the template that a call does not
	// have makes the ask fail: an ask without its filter would be answered for something else.
	URL string
	// Query names arguments that are sent as query values when they are given.
	Query []string
	// Headers are sent as well as the tool's own, which go only to the same scheme, host and port, and which they
	// override. HeaderRefs are as in [HTTPConfig].
	Headers    map[string]string
	HeaderRefs map[string]string
	// Found and Absent are CEL conditions over status (int), body (the answer as JSON, or null) and text (the
	// answer as text). Only for Reconcile, where both are needed.
	Found, Absent string
}
