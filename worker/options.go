package worker

import (
	"log/slog"

	"go.temporal.io/sdk/client"
)

// Options change how a worker runs beyond what its file says. The zero value is what [Run] uses.
type Options struct {
	// Client is how Temporal is reached; nil reads the standard environment variables and profile
	// (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_PROFILE and so on). Address, namespace, identity,
	// logger and external storage are set where they are left out.
	Client *client.Options
	// Logger gets what the worker logs, secrets masked; nil is slog's default.
	Logger *slog.Logger
	// Build is the build id; empty is [BuildID]. [CheckBuild] says what one may be.
	Build string
	// Deployment is the worker deployment that the build is one of; empty is the file's, [NoDeployment] is none.
	// [CheckDeployment] says what a name may be.
	Deployment string
	// Health overrides the file's health address; "off" serves none.
	Health string
	// Ready is called once, when the worker polls, from a goroutine of its own; nil logs that it does.
	Ready func(Status)
}

// Status is what the health endpoints say about a worker.
type Status struct {
	Status string `json:"status"` // "ok", "ready" or "not ready"
	Build  string `json:"build"`
	// Deployment is the worker deployment that the build is one of, empty for an unversioned worker.
	Deployment string `json:"deployment,omitempty"`
	Serial     int64  `json:"serial"` // of the configuration in force
	// Digest is that configuration's, shortened.
	Digest    string `json:"config"`
	TaskQueue string `json:"taskQueue"`
	Namespace string `json:"namespace"`
	Store     string `json:"store"` // identity
	Identity  string `json:"identity"`
	// Health is the address of the endpoints, empty when there are none.
	Health string `json:"health,omitempty"`
	// Checks says of each thing that /readyz looks at "ok" or what is wrong.
	Checks map[string]string `json:"checks,omitempty"`
}
