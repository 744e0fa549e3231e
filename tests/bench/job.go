package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/tool"
)

// A job is one message: call the tool steps times, each result with size bytes, then answer.
type job struct {
	Steps int `json:"steps"`
	Size  int `json:"size"` // bytes
}

// text is the message that asks the scripted model for the job.
func (j job) text() string { return fmt.Sprintf("steps %d size %d", j.Steps, j.Size) }

func (j job) String() string { return fmt.Sprintf("K=%d %s", j.Steps, bytesText(j.Size)) }

// script is the model: it counts the results that it was given since the message. The tool is the first
// that it is offered.
func script(q modeltest.Request) modeltest.Step {
	var j job
	if _, err := fmt.Sscanf(q.User(), "steps %d size %d", &j.Steps, &j.Size); err != nil || len(q.Tools) == 0 {
		return modeltest.Fail(400, "bad_request", "not a job of the benchmark")
	}
	n := len(q.Results())
	if n >= j.Steps {
		return modeltest.Say("All of it is done.")
	}
	return modeltest.Want(modeltest.Call{
		ID: fmt.Sprintf("call_%d_%d", len(q.Messages), n+1), Name: q.Tools[0],
		Args: fmt.Sprintf(`{"n":%d,"size":%d}`, n+1, j.Size),
	})
}

// toolArgs are the arguments of the job's tool.
type toolArgs struct {
	N    int `json:"n"`
	Size int `json:"size"`
}

// work is the tool: it returns size bytes of text, different for each n.
func work(a toolArgs) string {
	head := fmt.Sprintf("result %d: ", a.N)
	return (head + strings.Repeat("the quick brown fox jumps over the lazy dog ", a.Size/44+1))[:max(a.Size, 0)]
}

// The names of the tool. What it does is the same: Holdfast keeps records of the one that acts and none of
// the one that reads.
const (
	toolActs  = "act"
	toolReads = "look"
)

// tools are the two as Holdfast gets them.
func tools() ([]tool.Tool, error) {
	var out []tool.Tool
	for name, class := range map[string]agent.Class{toolActs: agent.ClassOnce, toolReads: agent.ClassRead} {
		t, err := tool.New(tool.Spec{Name: name, Description: "Does the work.", Class: class},
			func(_ context.Context, _ tool.Call, a toolArgs) (string, error) { return work(a), nil })
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// askFor returns what the hand-written loops send: the same tool, the same instructions.
func askFor(conversation []openai.Message) openai.Request {
	return openai.Request{
		Messages: append([]openai.Message{{Role: openai.RoleSystem, Text: instructions}}, conversation...),
		Tools: []openai.Tool{{Name: toolActs, Description: "Does the work.", Parameters: []byte(
			`{"type":"object","properties":{"n":{"type":"integer"},"size":{"type":"integer"}},"required":["n","size"],"additionalProperties":false}`)}},
	}
}

const instructions = "You do what is asked for, step by step."

func bytesText(n int) string {
	if n >= 1<<10 && n%(1<<10) == 0 {
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d B", n)
}
