package histories

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/types/known/durationpb"
)

// badAuthority are falsified where people decide, settle, compensate and extend.
var badAuthority = []falsified{
	{
		"a judgement removed", "turn-approved", func(d *draft) { d.dropEvents(d.local("judge", 1)) }, true,
		[]string{"TMPRL1100", "this build has local activity (type judge)"},
	},
	{
		"an expiry not waited for", "turn-approved",
		func(d *draft) {
			d.dropEvents(d.event(timerStarted, 1), d.event(enumspb.EVENT_TYPE_TIMER_CANCELED, 1))
		}, true,
		[]string{"TMPRL1100", "history has nothing, this build has timer (duration 24h0m0s)"},
	},
	{
		"an expiry changed", "turn-expired",
		func(d *draft) {
			d.event(timerStarted, 1).GetTimerStartedEventAttributes().StartToFireTimeout = durationpb.New(time.Hour)
		}, false,
		[]string{"timer: duration", "1h0m0s", "2s"},
	},
	{
		"an approval by somebody else", "turn-approved",
		func(d *draft) {
			d.reword(d.activity("tool", 2).GetInput(), `"approver":"alice"`, `"approver":"mallory"`)
		}, false,
		[]string{"activity tool: input.grant.decisions[0].approver", "mallory", "alice"},
	},
	{
		"an approval by fewer", "turn-approved-by-quorum",
		func(d *draft) { d.reword(d.activity("tool", 2).GetInput(), `"quorum":2`, `"quorum":1`) }, false,
		[]string{"activity tool: input.grant.terms.quorum"},
	},
	{
		"an approval left out", "turn-approved",
		func(d *draft) { d.reword(d.activity("tool", 2).GetInput(), `"grant":`, `"grand":`) }, false,
		[]string{"activity tool: input.grand", "activity tool: input.grant", "has nothing"},
	},
	{
		"an edited action sent as it was proposed", "turn-approved-edited",
		func(d *draft) { d.reword(d.activity("tool", 2).GetInput(), "5.00", "19.90") }, false,
		[]string{"activity tool: input.args", "5.00", "19.90"},
	},
	{
		"attributes of a request not written", "turn-approved", func(d *draft) { d.dropEvents(d.event(upserted, 2)) }, true,
		[]string{"TMPRL1100", `history has nothing, this build has search attributes (values {"HoldfastApprovals":1`},
	},
	{
		"an attribute not taken back", "turn-approved",
		func(d *draft) {
			delete(d.event(upserted, 3).GetUpsertWorkflowSearchAttributesEventAttributes().GetSearchAttributes().GetIndexedFields(), "HoldfastExpires")
		}, false,
		[]string{"search attributes: values", "HoldfastExpires"},
	},
	{
		"another request carried on", "turn-waits-continued",
		func(d *draft) {
			d.reword(d.event(continued, 1).GetWorkflowExecutionContinuedAsNewEventAttributes().GetInput(), `\"outcome\":\"pending\"`, `\"outcome\":\"approved\"`)
		}, false,
		[]string{"end of the run: continued as new", `state.requests.asks[0].outcome: history has "approved"`},
	},
	{
		"a person's settlement not looked into", "turn-uncertain-settled", func(d *draft) { d.dropEvents(d.local("settle", 2)) }, true,
		[]string{"TMPRL1100", "this build has local activity (type settle)"},
	},
	{
		"a late outcome not looked into", "turn-late-settled", func(d *draft) { d.dropActivity("settle", 1) }, true,
		[]string{"TMPRL1100", "history has nothing, this build has activity (type settle"},
	},
	{
		"a session's settlement not looked into", "session-settles", func(d *draft) { d.dropEvents(d.local("settle", 1)) }, true,
		[]string{"TMPRL1100", "history has nothing, this build has local activity (type settle)"},
	},
	{
		"a turn that ended without a plan", "turn-compensated", func(d *draft) { d.dropEvents(d.local("plan", 1)) }, true,
		[]string{"TMPRL1100", "this build has local activity (type plan)"},
	},
	{
		"compensations in another order", "turn-compensated",
		func(d *draft) {
			a, b := d.activity("tool", 3), d.activity("tool", 4)
			a.Input, b.Input = b.GetInput(), a.GetInput()
		}, false,
		[]string{"activity tool: input.undoes", "/1.1/", "/1.2/"},
	},
	{
		"a compensation under another key", "turn-undo",
		func(d *draft) { d.reword(d.activity("tool", 1).GetInput(), `"undo":1`, `"undo":2`) }, false,
		[]string{"activity tool: input.undo"},
	},
	{
		"another turn compensated", "session-compensates",
		func(d *draft) {
			d.reword(d.event(childInitiated, 2).GetStartChildWorkflowExecutionInitiatedEventAttributes().GetInput(), `"undo":{"turn":1`, `"undo":{"turn":2`)
		}, false,
		[]string{"child workflow ordered:turn-1-undo-1: input.undo.turn"},
	},
	{
		"an exhausted budget called a failure", "turn-budget-exhausted",
		func(d *draft) {
			d.reword(d.event(failed, 1).GetWorkflowExecutionFailedEventAttributes().GetFailure().GetApplicationFailureInfo().GetDetails(), "budget_exhausted", "failed")
		}, false,
		[]string{"end of the run: failed.details.status", "budget_exhausted"},
	},
	{
		"an effect beyond the budget", "turn-budget-extended",
		func(d *draft) { d.dropEvents(d.event(timerStarted, 1), d.event(enumspb.EVENT_TYPE_TIMER_CANCELED, 1)) }, true,
		[]string{"TMPRL1100", "history has nothing, this build has timer (duration 10m0s)"},
	},
	{
		"a reset that is forgotten", "turn-reset-approved",
		func(d *draft) { d.reword(d.activity("tool", 2).GetInput(), `"reset":true,`, ``) }, false,
		[]string{"activity tool: input.reset"},
	},
	{
		"another input before the reset", "turn-reset-approved",
		func(d *draft) { d.reword(d.activity("tool", 1).GetInput(), `\"42\"`, `\"43\"`) }, false,
		[]string{"activity tool: input.args", "42", "43"},
	},
}
