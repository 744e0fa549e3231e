package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/devserver"
	"github.com/holdfast-run/holdfast/internal/modeltest"
)

// raw sends a signal to a turn byte by byte as somebody would who knows nothing of us.
func (r *rig) raw(ctx context.Context, session, name string, payloads ...*commonpb.Payload) error {
	_, err := r.client.WorkflowService().SignalWorkflowExecution(ctx, &workflowservice.SignalWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: agent.TurnID(r.prefix+session, 1)},
		SignalName: name, Input: &commonpb.Payloads{Payloads: payloads},
	})
	return err
}

func payload(encoding, data string) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: []byte(data)}
}

// TestAFloodOfRubbishDoesNotKeepTheRealDecisionFromCounting sends what nobody should send while a turn waits: it
// continues as new under it, and then somebody decides.
func TestAFloodOfRubbishDoesNotKeepTheRealDecisionFromCounting(t *testing.T) {
	t.Parallel()
	server, err := devserver.Start(t.Context(), devserver.Options{Headless: true}) // others would wait behind it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop() })
	alice := newPerson(t, "alice")
	r := newRig(t, setting{
		model: modeltest.Config{Func: orders}, address: server.Address(),
		policy: "{rules: [{name: asks, then: ask, approval: {by: [alice]}}], " + approvers(alice) + "}",
	})
	r.worker("")
	r.start("s", "refund"+refund42)
	scope, a := r.ask("s", 1, agent.OutcomePending)
	first := r.run(agent.TurnID(r.prefix+"s", 1))

	sent := 0
	send := func(payloads ...*commonpb.Payload) {
		t.Helper()
		for _, name := range []string{agent.SignalApproval, agent.SignalSettle} {
			if err := r.patiently(func() error { return r.raw(t.Context(), "s", name, payloads...) }); err != nil {
				t.Errorf("the server does not take it: %v", err)
			}
		}
		sent++
	}
	for _, data := range []string{
		"", "{", "null", "17", `"approve"`, "[]", strings.Repeat("[", 5000), "\xff\xfe\x00", `{"id":7}`, `{"id":null}`,
		`{"id":"x","id":"y"}`, `{"decision":{"a":1}}`, `{"key":[]}`, `{"id":"` + a.ID + `","digest":"` + strings.Repeat("0", 64) + `","decision":"approve","approver":"alice"}`,
		`{"id":"` + a.ID + `","digest":"` + string(a.Action) + `","decision":"yes","approver":"alice"}`,
		`{"id":"` + a.ID + `","digest":"` + string(a.Action) + `","decision":"approve","approver":"alice"}`, // unsigned
		`{"key":"` + a.Key + `","outcome":"committed","evidence":"I say so","approver":"alice"}`,            // nothing is uncertain
	} {
		send(payload("json/plain", data))
	}
	send()
	send(nil)
	send(payload("binary/encrypted", "?"))
	send(payload("json/plain", "{}"), payload("json/plain", "{}"))

	second := time.NewTicker(time.Second)
	defer second.Stop()
	for range 3 {
		<-second.C
		send(payload("json/plain", `{"id":"`+strings.Repeat("x", 1<<20)+`"}`))
	}
	r.flood("s", 10_050)

	d := alice.says(t, scope, a, agent.ChoiceApprove)
	if err := r.patiently(func() error {
		return r.client.SignalWorkflow(t.Context(), agent.TurnID(r.prefix+"s", 1), "", agent.SignalApproval, d)
	}); err != nil {
		t.Fatal(err)
	}
	if res := r.ended("s", 1); res.Status != agent.StatusDone {
		t.Errorf("%+v", res)
	}
	if last := r.run(agent.TurnID(r.prefix+"s", 1)); last == first {
		t.Error("the turn has not continued as new")
	}
	if n := len(r.pay.Books().Entries); n != 1 {
		t.Errorf("%d refunds", n)
	}
	v := r.approvals("s", 1, "it answers", func(agent.ApprovalsView) bool { return true })
	if n := len(v.Approvals); n != 1 || v.Approvals[0].Outcome != agent.OutcomeApproved {
		t.Errorf("approvals %+v", v.Approvals)
	}
	if all := len(v.Refused) + v.More; len(v.Refused) != agent.MaxRefusals || all != 10_050+sent {
		t.Errorf("%d refusals are listed and %d more counted, of %d", len(v.Refused), v.More, 10_050+sent)
	}
}

// flood sends so many decisions of 1 KiB that name no request.
func (r *rig) flood(session string, n int) {
	r.t.Helper()
	g, ctx := errgroup.WithContext(r.t.Context())
	g.SetLimit(32)
	for i := range n {
		g.Go(func() error {
			b, err := json.Marshal(agent.ApprovalDecision{
				ID: fmt.Sprint("no-such-request-", i), Choice: agent.ChoiceApprove, Approver: "mallory", Reason: strings.Repeat("x", 800),
			})
			if err != nil {
				return err
			}
			data := payload("json/plain", string(b))
			return r.patiently(func() error { return r.raw(ctx, session, agent.SignalApproval, data) })
		})
	}
	if err := g.Wait(); err != nil {
		r.t.Fatalf("the flood: %v", err)
	}
}

// patiently sends a signal again for as long as the server says not now: while a run is about to continue as new, and
// when a run has taken the 10,000 signals that it takes before the worker could continue it.
func (r *rig) patiently(send func() error) (err error) {
	for began := time.Now(); time.Since(began) < patience; time.Sleep(20 * time.Millisecond) {
		var busy *serviceerror.ResourceExhausted
		if err = send(); !errors.As(err, &busy) && (err == nil || !strings.Contains(err.Error(), "limit for signal events")) {
			break
		}
	}
	return err
}
