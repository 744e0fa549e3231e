package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// Requests are the approval requests of one turn: those that wait, the latest that have ended, and the
// decisions that did not count. The zero value is empty and ready. It is carried by continue-as-new as JSON, bounded
// by agent's MaxPending, MaxEnded, beyond which the ends of the running step are kept, and MaxRefusals, and decides
// nothing by anything but what it is given. It is not safe for concurrent use.
type Requests struct {
	Asks    []agent.Approval `json:"asks,omitempty"`
	Ended   int              `json:"ended,omitempty"` // that have ended and are not kept any more
	Refused []agent.Refusal  `json:"refused,omitempty"`
	More    int              `json:"more,omitempty"` // refusals beyond those listed
}

// NewRequest returns the n-th request for a call, made at that moment. Why says what led to it when it is not the
// first.
func NewRequest(key string, n int, p agent.Place, c agent.Call, at time.Time, why string) agent.ApprovalRequest {
	terms := agent.Terms{Quorum: 1}
	if c.Terms != nil {
		terms = *c.Terms
	}
	r := agent.ApprovalRequest{
		ID: agent.ApprovalID(key, n), Key: key, Ask: n, Tool: c.Tool, Args: c.Args, Class: c.Class, Action: c.Action,
		Place: p, Verdict: c.Verdict, Terms: terms, RequestedAt: at, ExpiresAt: at.Add(terms.Expires.Std()), Why: why,
	}
	if terms.EscalateAfter > 0 {
		r.EscalatesAt = at.Add(terms.EscalateAfter.Std())
	}
	return r
}

// Edited notes in a request what the model had proposed, before an approver edited the action of an earlier one into
// this.
func Edited(r *agent.ApprovalRequest, earlier agent.ApprovalRequest) {
	r.Proposed, r.ProposedArgs = earlier.Action, earlier.Args
	if earlier.Proposed != "" {
		r.Proposed, r.ProposedArgs = earlier.Proposed, earlier.ProposedArgs
	}
}

// Open adds a request, which waits from then on.
func (r *Requests) Open(a agent.Approval) error {
	switch {
	case r.index(a.ID) >= 0:
		return fmt.Errorf("request %q: was opened before", a.ID)
	case r.Waiting() >= agent.MaxPending:
		return fmt.Errorf("%d requests wait already; the limit of a turn is %d", r.Waiting(), agent.MaxPending)
	}
	a.Outcome = agent.OutcomePending
	r.Asks = append(r.Asks, a)
	return nil
}

// Get returns the request of that id.
func (r *Requests) Get(id string) (agent.Approval, bool) {
	i := r.index(id)
	if i < 0 {
		return agent.Approval{}, false
	}
	return r.Asks[i], true
}

// Pending returns the requests that wait, in the order in which they were opened.
func (r *Requests) Pending() []agent.Approval {
	var out []agent.Approval
	for _, a := range r.Asks {
		if a.Outcome == agent.OutcomePending {
			out = append(out, a)
		}
	}
	return out
}

// All returns the pending requests, then the ended ones that are kept.
func (r *Requests) All() []agent.Approval {
	out := r.Pending()
	for _, a := range r.Asks {
		if a.Outcome != agent.OutcomePending {
			out = append(out, a)
		}
	}
	return out
}

// Waiting counts the requests that wait.
func (r *Requests) Waiting() int {
	n := 0
	for _, a := range r.Asks {
		if a.Outcome == agent.OutcomePending {
			n++
		}
	}
	return n
}

// Expires returns the first expiry among the requests that wait, zero if none does.
func (r *Requests) Expires() time.Time {
	var first time.Time
	for _, a := range r.Pending() {
		if first.IsZero() || a.ExpiresAt.Before(first) {
			first = a.ExpiresAt
		}
	}
	return first
}

// Accept adds an approval that counts. It returns true once the quorum of distinct people is complete and ends
// the request as approved then.
func (r *Requests) Accept(id string, d agent.Decided, quorum int) bool {
	i := r.pending(id)
	if i < 0 {
		return false
	}
	a := &r.Asks[i]
	a.Decisions = append(a.Decisions, d)
	if people(a.Decisions) < max(quorum, a.Terms.Quorum, 1) {
		return false
	}
	r.end(i, agent.OutcomeApproved, "", d.At)
	return true
}

// people counts who has approved, each once.
func people(given []agent.Decided) int {
	n := 0
	for i, d := range given {
		seen := false
		for _, before := range given[:i] {
			seen = seen || before.Approver == d.Approver
		}
		if !seen {
			n++
		}
	}
	return n
}

// Decline ends a request by the decision of a person to decline or to cancel it.
func (r *Requests) Decline(id string, d agent.Decided, note string) {
	i := r.pending(id)
	if i < 0 {
		return
	}
	r.Asks[i].Decisions = append(r.Asks[i].Decisions, d)
	outcome := agent.OutcomeDeclined
	if d.Choice == agent.ChoiceCancel {
		outcome = agent.OutcomeCancelled
	}
	r.end(i, outcome, note, d.At)
}

// End ends a request that waits otherwise: expired, cancelled with its turn, superseded.
func (r *Requests) End(id string, outcome agent.Outcome, note string, at time.Time) {
	if i := r.pending(id); i >= 0 {
		r.end(i, outcome, note, at)
	}
}

// Proposed is [Edited] for the request of that id.
func (r *Requests) Proposed(id string, earlier agent.Approval) {
	if i := r.index(id); i >= 0 {
		Edited(&r.Asks[i].ApprovalRequest, earlier.ApprovalRequest)
	}
}

// Void marks an approved request as no longer valid when its action was to be sent.
func (r *Requests) Void(id, note string, at time.Time) {
	if i := r.index(id); i >= 0 && r.Asks[i].Outcome == agent.OutcomeApproved {
		r.end(i, agent.OutcomeVoid, note, at)
	}
}

func (r *Requests) end(i int, outcome agent.Outcome, note string, at time.Time) {
	a := &r.Asks[i]
	a.Outcome, a.Note, a.EndedAt = outcome, note, at
	if len(r.Asks)-r.Waiting() <= agent.MaxEnded {
		return
	}
	for j := range r.Asks { // the oldest goes
		if j != i && r.over(j) {
			r.Asks = append(r.Asks[:j:j], r.Asks[j+1:]...)
			r.Ended++
			return
		}
	}
}

// over says that nobody needs a request any more. How the latest one for a call of the running step ended is needed
// until the call's turn comes, however many others end before.
func (r *Requests) over(i int) bool {
	a, step := &r.Asks[i], r.Asks[len(r.Asks)-1].Place.Step
	return a.Outcome != agent.OutcomePending &&
		(a.Place.Step != step || a.Outcome == agent.OutcomeVoid || a.Outcome == agent.OutcomeSuperseded)
}

// Refuse lists a decision that does not count, or counts it when the list is full.
func (r *Requests) Refuse(f agent.Refusal) { r.Refused, r.More = Refuse(r.Refused, r.More, f) }

// Refuse adds a refusal to a list bounded by [agent.MaxRefusals]; more counts those beyond it. Whatever came from
// outside is cut, so that the list is bounded in bytes too.
func Refuse(list []agent.Refusal, more int, f agent.Refusal) ([]agent.Refusal, int) {
	if len(list) >= agent.MaxRefusals {
		return list, more + 1
	}
	f.ID, f.Choice, f.Approver, f.Ref, f.Why = head(f.ID, 240), head(f.Choice, 32), head(f.Approver, agent.MaxName), head(f.Ref, agent.MaxRef), head(f.Why, 300)
	return append(list, f), more
}

// head returns the beginning of s, at most n bytes and valid UTF-8.
func head(s string, n int) string {
	if len(s) <= n {
		return string(bytes.ToValidUTF8([]byte(s), []byte("\uFFFD")))
	}
	return string(bytes.ToValidUTF8([]byte(s[:n]), nil)) + "…"
}

// index searches from the end: what is decided is nearly always among the latest.
func (r *Requests) index(id string) int {
	for i := len(r.Asks) - 1; i >= 0; i-- {
		if r.Asks[i].ID == id {
			return i
		}
	}
	return -1
}

func (r *Requests) pending(id string) int {
	i := r.index(id)
	if i < 0 || r.Asks[i].Outcome != agent.OutcomePending {
		return -1
	}
	return i
}

// ParseDecision reads the payload of a signal "approval". The error is for its sender; what could be made out is
// returned with it, so that the refusal can name it.
func ParseDecision(payload []byte) (agent.ApprovalDecision, error) {
	var d agent.ApprovalDecision
	if err := decodeSignal(payload, &d); err != nil {
		return d, err
	}
	switch d.Choice {
	case agent.ChoiceApprove, agent.ChoiceDecline, agent.ChoiceCancel:
	default:
		return d, fmt.Errorf("the decision is %q; want approve, decline or cancel", head(string(d.Choice), 32))
	}
	switch {
	case d.ID == "":
		return d, fmt.Errorf("no id; want the id of the request")
	case !d.Digest.Valid():
		return d, fmt.Errorf("the digest is not 64 hex digits; want the digest that the request shows")
	case d.Args != "" && d.Choice != agent.ChoiceApprove:
		return d, fmt.Errorf("only an approval can edit the arguments")
	}
	return d, signer(d.Approver, d.Reason, d.Signature, d.Ref)
}

// ParseSettlement is the same for a signal "settle".
func ParseSettlement(payload []byte) (agent.Settlement, error) {
	var s agent.Settlement
	if err := decodeSignal(payload, &s); err != nil {
		return s, err
	}
	switch {
	case s.Key == "":
		return s, fmt.Errorf("no key; want the key of the effect")
	case s.Outcome == "" && s.Approver == "" && s.Evidence == "":
		return s, nil // a worker's word: the record or the destination is asked
	case s.Outcome != agent.StateCommitted && s.Outcome != agent.StateFailed:
		return s, fmt.Errorf("the outcome is %q; want committed or failed", head(string(s.Outcome), 32))
	case s.Evidence == "" || len(s.Evidence) > agent.MaxEvidence:
		return s, fmt.Errorf("the evidence has %d bytes; want 1 to %d that say how the outcome is known", len(s.Evidence), agent.MaxEvidence)
	}
	return s, signer(s.Approver, "", s.Signature, s.Ref)
}

// ParseCompensate is the same for a signal "compensate".
func ParseCompensate(payload []byte) (agent.Compensate, error) {
	var c agent.Compensate
	if err := decodeSignal(payload, &c); err != nil {
		return c, err
	}
	if c.Turn < 1 {
		return c, fmt.Errorf("the turn is %d; want the number of a turn", c.Turn)
	}
	return c, signer(c.Approver, c.Reason, c.Signature, c.Ref)
}

func signer(name, reason, signature, ref string) error {
	switch {
	case name == "" || len(name) > agent.MaxName:
		return fmt.Errorf("the approver's name has %d bytes; want 1 to %d", len(name), agent.MaxName)
	case len(reason) > agent.MaxReason:
		return fmt.Errorf("the reason has %d bytes; the limit is %d", len(reason), agent.MaxReason)
	case len(signature) > agent.MaxSignature:
		return fmt.Errorf("the signature has %d bytes; the limit is %d", len(signature), agent.MaxSignature)
	case len(ref) > agent.MaxRef:
		return fmt.Errorf("the ref has %d bytes; the limit is %d", len(ref), agent.MaxRef)
	}
	return nil
}

func decodeSignal(payload []byte, v any) error {
	if len(payload) > agent.MaxDecision {
		return fmt.Errorf("the payload has %d bytes; the limit is %d", len(payload), agent.MaxDecision)
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	d.DisallowUnknownFields() // a misspelt name would otherwise be a decision that says less than was meant
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("not a JSON object as it should be: %w", err)
	}
	if d.More() {
		return fmt.Errorf("more than one JSON value")
	}
	return nil
}
