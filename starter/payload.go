package starter

import (
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning/replay"
)

// decoder reads payloads of histories. They are foreign: another version or another program wrote them.
type decoder struct{ converter.DataConverter }

// first decodes the first payload into v. It returns errStored for one that was too large for the history and cannot be
// fetched.
func (d decoder) first(ps *commonpb.Payloads, v any) error {
	if len(ps.GetPayloads()) == 0 {
		return errors.New("no payload")
	}
	return d.payload(ps.GetPayloads()[0], v)
}

func (d decoder) payload(p *commonpb.Payload, v any) error {
	if p == nil {
		return errors.New("no payload")
	}
	if _, fetches := d.DataConverter.(fetching); replay.Stored(p) && !fetches {
		return errStored
	}
	return d.FromPayload(p, v)
}

// shown is what stands in a line for a payload that first could not decode.
func shown(err error) string {
	if errors.Is(err, errStored) {
		return "(stored)"
	}
	return "(cannot be read: " + line(err.Error(), 80) + ")"
}

// text decodes a payload that holds a string; anything else is "".
func (d decoder) text(p *commonpb.Payload) string {
	var s string
	if p == nil || d.payload(p, &s) != nil {
		return ""
	}
	return s
}

// maxCauses bounds how deep a failure's chain of causes is followed.
const maxCauses = 16

// failure is what matters of a Temporal failure.
type failure struct {
	kind    string // the application's error type, if any
	message string
	result  *agent.TurnResult // when a turn's
}

// failure reads the most telling link of a failure's chain: the first that an application raised.
func (d decoder) failure(f *failurepb.Failure) failure {
	var out failure
	for i := 0; f != nil && i < maxCauses; i, f = i+1, f.GetCause() {
		if out.message == "" {
			out.message = describeFailure(f)
		}
		var details *commonpb.Payloads
		switch {
		case f.GetApplicationFailureInfo() != nil:
			out.kind, out.message = f.GetApplicationFailureInfo().GetType(), f.GetMessage()
			details = f.GetApplicationFailureInfo().GetDetails()
		case f.GetCanceledFailureInfo() != nil:
			out.kind = agent.ErrCancelled
			details = f.GetCanceledFailureInfo().GetDetails()
		}
		out.result = d.turnResult(details)
		if out.kind != "" {
			break
		}
	}
	return out
}

func describeFailure(f *failurepb.Failure) string {
	if t := f.GetTimeoutFailureInfo(); t != nil {
		return fmt.Sprintf("%s timeout", t.GetTimeoutType())
	}
	return f.GetMessage()
}

// turnResult decodes the result of a turn; nil when it is none.
func (d decoder) turnResult(ps *commonpb.Payloads) *agent.TurnResult {
	var r agent.TurnResult
	if d.first(ps, &r) != nil || !r.Status.Final() {
		return nil
	}
	return &r
}

func (f failure) String() string {
	switch {
	case f.kind != "" && f.message != "":
		return f.kind + ": " + f.message
	case f.kind != "":
		return f.kind
	case f.message != "":
		return f.message
	}
	return "no reason given"
}
