package tool

// An MCPAsk is a call of another tool of the same server, by which a tool asks about a call. It changes nothing.
type MCPAsk struct {
	// Tool is the server's own name of the tool that is asked.
	Tool string
	// Args are CEL expressions over args (the call's arguments) and key (its idempotency key), by the name of the
	// asked tool's argument.
	Args map[string]string
	// Found and Absent are CEL conditions over error (bool: the asked tool reported one), text (what it said) and
	// body (its structured content, or its text as JSON, or null). Only for Reconcile, where both are needed.
	Found, Absent string
}
