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
	// ActivityJudge is local: it checks a person's decision on an approval.
	ActivityJudge = "judge"
	// ActivitySettle is local for a person's word on an uncertain effect, ordinary where the destination
	// is asked.
	ActivitySettle = "settle"
	// ActivityPlan is local: it says which compensations there are and whether they may run.
	ActivityPlan = "plan"
	// ActivityIdentify is local: it checks the signature of a steering message.
	ActivityIdentify = "identify"
	// ActivityFork checks the right to fork a session and copies the transcript.
	ActivityFork = "fork"
)

// Updates, signals and queries. Their payload is one flat JSON object, so that they can be sent by hand
// from the Web UI and the temporal CLI.
const (
	UpdateSend = "send"

	SignalCancel = "cancel"
	SignalClose  = "close"
	SignalExtend = "extend"
	SignalSteer  = "steer"

	// SignalApproval is a person's decision, to the turn that asked.
	SignalApproval = "approval"
	// SignalSettle is a word on an uncertain effect, to its turn or, after that has ended, the session.
	SignalSettle = "settle"
	// SignalCompensate orders compensations of a turn that has ended, to the session.
	SignalCompensate = "compensate"

	QuerySession   = "session"
	QueryTurn      = "turn"
	QueryApprovals = "approvals"
	QueryEffects   = "effects"
)

// Search attributes. "holdfast setup" registers them.
const (
	AttributeAgent  = "HoldfastAgent"
	AttributeStatus = "HoldfastStatus"
	AttributeTenant = "HoldfastTenant"
	// AttributeAttention is what a person should look at: see Attention.
	AttributeAttention = "HoldfastAttention"
	// AttributeApprovals counts the approval requests that wait, AttributeExpires is the first expiry
	// among them.
	AttributeApprovals = "HoldfastApprovals"
	AttributeExpires   = "HoldfastExpires"
	// AttributeUncertain counts the effects whose outcome is not known.
	AttributeUncertain = "HoldfastUncertain"
)

// An Attribute is a search attribute and its type: "Keyword", "Int" or "Datetime".
type Attribute struct{ Name, Type string }

// Attributes returns all search attributes, by name.
func Attributes() []Attribute {
	return []Attribute{
		{AttributeAgent, "Keyword"},
		{AttributeApprovals, "Int"},
		{AttributeAttention, "Keyword"},
		{AttributeExpires, "Datetime"},
		{AttributeStatus, "Keyword"},
		{AttributeTenant, "Keyword"},
		{AttributeUncertain, "Int"},
	}
}

// Values of AttributeAttention, the most urgent first: a run has one of them, or none.
const (
	AttentionUncertain    = "uncertain"    // an effect whose outcome nobody knows, or a contradiction about one
	AttentionCompensation = "compensation" // one that failed
	AttentionApproval     = "approval"     // a request that waits
	AttentionBudget       = "budget"       // used up, and somebody may extend it
)

// ExpirySummary begins the summary of the timer that ends a request for approval; the tool's name follows.
const ExpirySummary = "expiry of "

// TaskQueue is the task queue used when the configuration names none.
const TaskQueue = "holdfast"
