package naive

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/internal/payments"
)

// What a client needs to know of the loop.
const (
	workflowTurn   = "NaiveTurn" // takes the conversation up to a user's message, returns it up to the answer
	signalApproval = "approval"  // of type approval
	queryPending   = "pending"   // returns the id of the call that waits for a person, or ""
	toolLookup     = "lookup_order"
	toolPay        = "pay"
)

// An approval is a person's word on a call.
type approval struct {
	Call     string `json:"call"`
	Approved bool   `json:"approved"`
}

// large is the amount from which a person is asked.
const large payments.Amount = 20_00

// turn is the workflow: it asks the model and does what the model asks for until there is an answer.
func turn(ctx workflow.Context, conversation []openai.Message) ([]openai.Message, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 5 * time.Second})
	pending := ""
	if err := workflow.SetQueryHandler(ctx, queryPending, func() (string, error) { return pending, nil }); err != nil {
		return nil, err
	}
	var a *activities
	for {
		var answer openai.Message
		if err := workflow.ExecuteActivity(ctx, a.Model, conversation).Get(ctx, &answer); err != nil {
			return nil, err
		}
		conversation = append(conversation, answer)
		if len(answer.Calls) == 0 {
			return conversation, nil
		}
		for _, call := range answer.Calls {
			result := openai.Message{Role: openai.RoleTool, CallID: call.ID, Text: "a person has declined this"}
			if !asks(call) || approved(ctx, call.ID, &pending) {
				if err := workflow.ExecuteActivity(ctx, a.Tool, call).Get(ctx, &result.Text); err != nil {
					return nil, err
				}
			}
			conversation = append(conversation, result)
		}
	}
}

// asks says whether a call is one that a person has to approve.
func asks(call openai.Call) bool {
	var args struct{ Amount payments.Amount }
	return call.Name == toolPay && json.Unmarshal([]byte(call.Args), &args) == nil && args.Amount > large
}

// approved waits for a person's word on a call.
func approved(ctx workflow.Context, call string, pending *string) bool {
	*pending = call
	defer func() { *pending = "" }()
	for {
		var word approval
		workflow.GetSignalChannel(ctx, signalApproval).Receive(ctx, &word)
		if word.Call == call {
			return word.Approved
		}
	}
}

// activities are the two activities and what they use.
type activities struct {
	model    *openai.Client
	http     *http.Client
	payments string // URL of the service
}

// Model asks the model for the conversation's next message.
func (a *activities) Model(ctx context.Context, conversation []openai.Message) (openai.Message, error) {
	tools := []openai.Tool{{Name: toolLookup}, {Name: toolPay}}
	answer, err := a.model.Ask(ctx, openai.Request{Messages: conversation, Tools: tools})
	return openai.Message{Role: openai.RoleAssistant, Text: answer.Text, Calls: answer.Calls}, err
}

// Tool does what the model asks for.
func (a *activities) Tool(ctx context.Context, call openai.Call) (string, error) {
	switch call.Name {
	case toolLookup:
		var args struct{ ID string }
		if err := json.Unmarshal([]byte(call.Args), &args); err != nil {
			return "these are no arguments: " + err.Error(), nil
		}
		return a.send(ctx, http.MethodGet, a.payments+"/orders/"+url.PathEscape(args.ID), "")
	case toolPay:
		return a.send(ctx, http.MethodPost, a.payments+"/refunds", call.Args)
	}
	return "there is no tool " + call.Name, nil
}

// send returns what a service answers. That a request is wrong is for the model to hear; after any other trouble
// Temporal tries again.
func (a *activities) send(ctx context.Context, method, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	res, err := a.http.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode >= 500 || res.StatusCode == http.StatusTooManyRequests) {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	return string(text), err
}
