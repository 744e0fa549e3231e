package agent

// Workflow types.
const (
	WorkflowSession = "Session"
	WorkflowTurn    = "Turn"
)

// Activity types. Workflows know activities by these names only.
const (
	// ActivityModel asks the model, canonicalises what it asked for and has policy decide on it.
	ActivityModel = "model"
	// ActivityTool admits one action, records its dispatch and sends it.
	ActivityTool = "tool"
	// ActivityReconcile finds out what became of actions whose tool activity left no answer. It
	// claims the dispatch record of an action that was never sent, so that it never will be.
	ActivityReconcile = "reconcile"
	// ActivityRecover reads the last state of a turn that was terminated or timed out.
	ActivityRecover = "recover"
	// ActivityOpen is local: it resolves the agent's name to a definition and stores the message.
	ActivityOpen = "open"
	// ActivityClose is local: it writes the turn's closing record.
	ActivityClose = "close"
)

// Updates, signals and queries. Their payload is one flat JSON object, so that they can be sent by hand
// from the Web UI and the temporal CLI.
const (
	UpdateSend = "send"

	SignalCancel = "cancel"
	SignalClose  = "close"
	SignalExtend = "extend"
	SignalSteer  = "steer"

	QuerySession = "session"
	QueryTurn    = "turn"
)

// Search attributes, all of type Keyword. "holdfast setup" registers them.
const (
	AttributeAgent     = "HoldfastAgent"
	AttributeStatus    = "HoldfastStatus"
	AttributeTenant    = "HoldfastTenant"
	AttributeAttention = "HoldfastAttention"
)

// Attributes returns the names of all search attributes.
func Attributes() []string {
	return []string{AttributeAgent, AttributeAttention, AttributeStatus, AttributeTenant}
}

// TaskQueue is the task queue used when the configuration names none.
const TaskQueue = "holdfast"
