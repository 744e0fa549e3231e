package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/openai"
)

// loopWorkflow is the workflow type of both hand-written loops. Their activities have the names that
// Holdfast's have, so that histories are counted alike.
const loopWorkflow = "Loop"

type loopInput struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// withOptions are an activity's options as a first agent has them: one timeout, default retries.
func withOptions(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 5 * time.Minute})
}

// A naive is the loop that everybody writes first: the workflow holds the conversation and hands it to
// every model activity.
type naive struct{ model *openai.Client }

func (n *naive) register(w worker.Registry) {
	w.RegisterWorkflowWithOptions(n.loop, workflow.RegisterOptions{Name: loopWorkflow})
	w.RegisterActivityWithOptions(n.ask, activity.RegisterOptions{Name: agent.ActivityModel})
	w.RegisterActivityWithOptions(n.act, activity.RegisterOptions{Name: agent.ActivityTool})
}

func (*naive) loop(ctx workflow.Context, in loopInput) (string, error) {
	ctx = withOptions(ctx)
	conversation := []openai.Message{{Role: openai.RoleUser, Text: in.Text}}
	for {
		var answer openai.Message
		if err := workflow.ExecuteActivity(ctx, agent.ActivityModel, conversation).Get(ctx, &answer); err != nil {
			return "", err
		}
		conversation = append(conversation, answer)
		if len(answer.Calls) == 0 {
			return answer.Text, nil
		}
		for _, c := range answer.Calls {
			var result openai.Message
			if err := workflow.ExecuteActivity(ctx, agent.ActivityTool, c).Get(ctx, &result); err != nil {
				return "", err
			}
			conversation = append(conversation, result)
		}
	}
}

func (n *naive) ask(ctx context.Context, conversation []openai.Message) (openai.Message, error) {
	a, err := n.model.Ask(ctx, askFor(conversation))
	return openai.Message{Role: openai.RoleAssistant, Text: a.Text, Calls: a.Calls}, err
}

func (*naive) act(_ context.Context, c openai.Call) (openai.Message, error) {
	text, err := called(c)
	return openai.Message{Role: openai.RoleTool, CallID: c.ID, Text: text}, err
}

func called(c openai.Call) (string, error) {
	var a toolArgs
	if err := json.Unmarshal([]byte(c.Args), &a); err != nil {
		return "", err
	}
	return work(a), nil
}

// A floor does the same with nothing durable: the conversation is in the memory of this process and
// activities pass references of constant size.
type floor struct {
	model *openai.Client

	mu            sync.Mutex
	conversations map[string][]openai.Message
}

// A reference is what a floor's activities get and return. It is as large as a head of a transcript.
type reference struct {
	ID     string       `json:"id"`
	Length int          `json:"length"`
	Digest agent.Digest `json:"digest"`
	Call   *openai.Call `json:"call,omitempty"`
}

func (f *floor) register(w worker.Registry) {
	f.conversations = map[string][]openai.Message{}
	w.RegisterWorkflowWithOptions(f.loop, workflow.RegisterOptions{Name: loopWorkflow})
	w.RegisterActivityWithOptions(f.ask, activity.RegisterOptions{Name: agent.ActivityModel})
	w.RegisterActivityWithOptions(f.act, activity.RegisterOptions{Name: agent.ActivityTool})
}

func (*floor) loop(ctx workflow.Context, in loopInput) (reference, error) {
	ctx = withOptions(ctx)
	ref := reference{ID: in.ID}
	text := in.Text
	for {
		if err := workflow.ExecuteActivity(ctx, agent.ActivityModel, ref, text).Get(ctx, &ref); err != nil {
			return ref, err
		}
		if ref.Call == nil {
			return ref, nil
		}
		if err := workflow.ExecuteActivity(ctx, agent.ActivityTool, ref).Get(ctx, &ref); err != nil {
			return ref, err
		}
		text, ref.Call = "", nil
	}
}

func (f *floor) ask(ctx context.Context, ref reference, text string) (reference, error) {
	conversation := f.at(ref)
	if text != "" {
		conversation = append(conversation, openai.Message{Role: openai.RoleUser, Text: text})
	}
	if len(conversation) == 0 {
		return ref, fmt.Errorf("conversation %q was lost with its worker", ref.ID)
	}
	a, err := f.model.Ask(ctx, askFor(conversation))
	if err != nil {
		return ref, err
	}
	next := f.keep(ref.ID, append(conversation, openai.Message{Role: openai.RoleAssistant, Text: a.Text, Calls: a.Calls}))
	if len(a.Calls) > 0 {
		next.Call = &a.Calls[0]
	}
	return next, nil
}

func (f *floor) act(_ context.Context, ref reference) (reference, error) {
	text, err := called(*ref.Call)
	if err != nil {
		return ref, err
	}
	return f.keep(ref.ID, append(f.at(ref), openai.Message{Role: openai.RoleTool, CallID: ref.Call.ID, Text: text})), nil
}

func (f *floor) at(ref reference) []openai.Message {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conversations[ref.ID][:ref.Length:ref.Length]
}

func (f *floor) keep(id string, conversation []openai.Message) reference {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conversations[id] = conversation
	last := conversation[len(conversation)-1]
	return reference{ID: id, Length: len(conversation), Digest: agent.DigestOf([]byte(last.Text))}
}
