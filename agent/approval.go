package agent

import (
	"strconv"
	"time"
)

// A Risk is what a tool's declaration says about how much harm a wrong call does. Policies decide by it.
type Risk string

// The risks, from the least.
const (
	RiskLow    Risk = "low"
	RiskMedium Risk = "medium"
	RiskHigh   Risk = "high"
)

// An Actor is who sent a message to a session.
type Actor struct {
	Name string `json:"name"`
	// Signed says that a signature proved the name; otherwise it is only claimed.
	Signed bool `json:"signed,omitempty"`
}

// Terms say what a person's approval of one action takes, as policy had it when it asked.
type Terms struct {
	Resource string `json:"resource,omitempty"`
	// Version is of the tool's whole declaration. With it, whoever shows a request computes the action's
	// digest from what is shown instead of believing it.
	Version Digest `json:"version,omitempty"`
	Risk    Risk   `json:"risk,omitempty"`
	// By names who may decide, groups resolved; empty is anybody.
	By     []string `json:"by,omitempty"`
	Quorum int      `json:"quorum"` // distinct people who must approve
	// Signed says that a decision counts only with a signature.
	Signed bool `json:"signed,omitempty"`
	// NotSender says that whoever sent the turn's messages may not decide.
	NotSender bool     `json:"notSender,omitempty"`
	Expires   Duration `json:"expires"`
	// EscalateAfter is when EscalateTo may decide as well; 0 is never.
	EscalateAfter Duration `json:"escalateAfter,omitempty"`
	EscalateTo    []string `json:"escalateTo,omitempty"`
	// Observed is the target's state when policy asked, nil if the tool cannot observe.
	Observed *Observation `json:"observed,omitempty"`
	// First is the key of an identical effect that committed before in the session.
	First string `json:"first,omitempty"`
}

// An Observation is what a tool saw of the target before the action.
type Observation struct {
	Digest Digest    `json:"digest,omitempty"` // of all that was seen; empty when Trouble is set
	Text   string    `json:"text,omitempty"`   // its beginning, masked
	At     time.Time `json:"at,omitzero"`
	// Trouble says why nothing could be seen. Then there is no state to drift from.
	Trouble string `json:"trouble,omitempty"`
}

// MaxObserved is how many bytes of an observation stand in history.
const MaxObserved = 1 << 10

// An ApprovalRequest asks people to decide on one exact action.
type ApprovalRequest struct {
	// ID is the action's key and the number of the ask: see [ApprovalID].
	ID      string  `json:"id"`
	Key     string  `json:"key"`
	Ask     int     `json:"ask"` // counts from 1; a void approval leads to the next ask
	Tool    string  `json:"tool"`
	Args    string  `json:"args"` // canonical: the bytes that are sent
	Class   Class   `json:"class"`
	Action  Digest  `json:"action"` // what a decision must name as its digest
	Place   Place   `json:"place"`
	Verdict Verdict `json:"verdict"`
	Terms   Terms   `json:"terms"`
	// Proposed is the digest of the model's own action when Args were edited by an approver.
	Proposed     Digest    `json:"proposed,omitempty"`
	ProposedArgs string    `json:"proposedArgs,omitempty"`
	RequestedAt  time.Time `json:"requestedAt"`
	ExpiresAt    time.Time `json:"expiresAt"`
	// EscalatesAt is when more people may decide; zero is never.
	EscalatesAt time.Time `json:"escalatesAt,omitzero"`
	// Why says what led to this ask when it is not the first: why the approval before it was void.
	Why string `json:"why,omitempty"`
}

// ApprovalID returns the id of the n-th request for the action of that key.
func ApprovalID(key string, ask int) string { return key + "#" + strconv.Itoa(ask) }

// A Choice is what a person decides about a request.
type Choice string

// The choices. The clock adds expiry, which is nobody's choice.
const (
	ChoiceApprove Choice = "approve"
	ChoiceDecline Choice = "decline"
	// ChoiceCancel withdraws the request: nobody is to decide it.
	ChoiceCancel Choice = "cancel"
)

// An ApprovalDecision is the payload of the signal "approval". It can be sent by hand.
type ApprovalDecision struct {
	ID       string `json:"id"`
	Digest   Digest `json:"digest"` // of the action as the request has it
	Choice   Choice `json:"decision"`
	Approver string `json:"approver"`
	Reason   string `json:"reason,omitempty"`
	// Args, with an approval, are the arguments as the approver wants them: JSON text of an object.
	Args string `json:"args,omitempty"`
	// Time is when the approver signed. It is part of what is signed; expiry goes by the server's clock.
	Time time.Time `json:"time,omitzero"`
	// Signature is an armored SSHSIG of the canonical decision; without it the approver is only claimed.
	Signature string `json:"signature,omitempty"`
	// Ref is the sender's own mark, at most MaxRef bytes, by which it finds the turn's word on it.
	Ref string `json:"ref,omitempty"`
}

// Bounds of decisions. They are part of the workflow's behaviour.
const (
	MaxDecision  = 128 << 10 // bytes of the payload of a signal "approval" or "settle"
	MaxSignature = 16 << 10
	MaxName      = 128     // bytes of a person's or a group's name
	MaxReason    = 1 << 10 // bytes of what a person says about a decision
	MaxRef       = 64
	MaxPending   = 100 // requests that wait in one turn
	MaxEarly     = 32  // decisions kept that came before their request
	MaxRefusals  = 100 // refusals listed; further ones are counted
	MaxEnded     = 64  // approvals that have ended and are kept whole
	MaxVoids     = 3   // the third void ends the call
)

// A Decided is a decision that was accepted.
type Decided struct {
	ApprovalDecision
	At time.Time `json:"at"` // when the server took the signal
	// Claimed says that no signature proves the approver.
	Claimed bool `json:"claimed,omitempty"`
	// Key is the SHA256 fingerprint of the key that signed.
	Key string `json:"key,omitempty"`
}

// Who names a person in a trail: "alice", or "alice (claimed)" when no signature proves the name.
func Who(name string, claimed bool) string {
	if claimed && name != "" {
		return name + " (claimed)"
	}
	return name
}

// A Refusal is a decision or a settlement that did not count, and why.
type Refusal struct {
	ID       string    `json:"id,omitempty"` // of the request, or the key of the effect
	Choice   string    `json:"decision,omitempty"`
	Approver string    `json:"approver,omitempty"`
	Ref      string    `json:"ref,omitempty"`
	Why      string    `json:"why"`
	At       time.Time `json:"at"`
}

// An Outcome is how a request ended.
type Outcome string

// The outcomes.
const (
	OutcomePending    Outcome = "pending"
	OutcomeApproved   Outcome = "approved"
	OutcomeDeclined   Outcome = "declined"
	OutcomeExpired    Outcome = "expired"
	OutcomeCancelled  Outcome = "cancelled"  // withdrawn, by a person or with the turn
	OutcomeSuperseded Outcome = "superseded" // an approver edited the arguments: another request took its place
	OutcomeVoid       Outcome = "void"       // approved, and then no longer valid when it was to be sent
)

// An Approval is a request and what became of it.
type Approval struct {
	ApprovalRequest
	Outcome   Outcome   `json:"outcome"`
	Decisions []Decided `json:"decisions,omitempty"` // that were accepted
	EndedAt   time.Time `json:"endedAt,omitzero"`
	Note      string    `json:"note,omitempty"` // why it ended so, for a person
}

// A Grant is a person's approval as the tool activity gets it, to be looked at again before the first send.
type Grant struct {
	ID        string    `json:"id"`
	Action    Digest    `json:"action"`             // that the decisions name
	Proposed  Digest    `json:"proposed,omitempty"` // the model's own, when an approver edited it
	Requested time.Time `json:"requested"`
	Expires   time.Time `json:"expires"`
	// Escalates is when the terms' EscalateTo may decide as well.
	Escalates time.Time `json:"escalates,omitzero"`
	Terms     Terms     `json:"terms"`
	Decisions []Decided `json:"decisions"`
}

// ApprovalsView is the answer of the query "approvals".
type ApprovalsView struct {
	Scope
	Turn      int        `json:"turn"`
	Approvals []Approval `json:"approvals"` // pending ones first come, then the latest that ended
	Refused   []Refusal  `json:"refused,omitempty"`
	// More counts refusals beyond those listed.
	More int `json:"more,omitempty"`
}

// JudgeInput is the argument of [ActivityJudge].
type JudgeInput struct {
	Scope
	Request    ApprovalRequest  `json:"request"`
	Decision   ApprovalDecision `json:"decision"`
	Given      []Decided        `json:"given,omitempty"` // approvals of the same request that were accepted before
	Senders    []Actor          `json:"senders,omitempty"`
	Definition string           `json:"definition"` // first 16 hex digits of the agent definition's digest
	// Run is the run whose history has the signal.
	Run string `json:"run"`
	// Root is the session that this one's forks began with, nil if it is no fork: see Origin.
	Root   *Scope `json:"root,omitempty"`
	Store  string `json:"store,omitempty"`
	Serial int64  `json:"serial,omitempty"`
}

// JudgeResult is the result of [ActivityJudge].
type JudgeResult struct {
	// Why says why the decision does not count; empty when it does.
	Why     string  `json:"why,omitempty"`
	Decided Decided `json:"decided"`
	// Quorum is what the policy in force asks for.
	Quorum int `json:"quorum,omitempty"`
	// Edited is the action that the approver made of the request's, decided on by policy.
	Edited *Call `json:"edited,omitempty"`
	Serial int64 `json:"serial,omitempty"`
}
