package agent

// A Definition is an agent as the operator's configuration had it when a turn started. It is stored under
// its digest, so that a running turn goes on with what it started with.
type Definition struct {
	Name         string `json:"name"`
	Instructions string `json:"instructions"`
	Model        string `json:"model"` // the name in the configuration
	// ModelVersion is the digest of what the configuration says about how that model answers: its name at the
	// server and the parameters of a request, not where the server is. Empty in definitions of before 0.3.0.
	ModelVersion Digest    `json:"modelVersion,omitempty"`
	Tools        []ToolRef `json:"tools,omitempty"`
	Limits       Limits    `json:"limits"`
}

// A ToolRef names a tool and the version of its declaration that the agent was defined with.
type ToolRef struct {
	Name    string `json:"name"`
	Version Digest `json:"version"`
}
