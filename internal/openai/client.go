package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/holdfast-run/holdfast/agent"
)

// A Client asks one model on one server. It is safe for concurrent use.
type Client struct {
	cfg Config
	api *goopenai.Client

	mu      sync.Mutex
	dialect dialect
}

// A dialect is what a server turned out not to understand.
type dialect struct {
	noUsage   bool // stream_options
	maxTokens bool // max_completion_tokens; the older max_tokens is sent instead
}

// String returns the server and the model: a printed Client shows no key.
func (c *Client) String() string { return c.cfg.String() }

// GoString returns what String returns.
func (c *Client) GoString() string { return c.cfg.String() }

// Ask returns the model's answer to r, or an [*Error].
//
// A server that does not know a member of the request is asked once more without it, and that is
// remembered for the client's life. Nothing else is sent twice.
func (c *Client) Ask(ctx context.Context, r Request) (Answer, error) {
	if err := r.check(); err != nil {
		return Answer{}, err.sealed(c.cfg.Key)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.AttemptTimeout, errAttempt)
	defer cancel()
	for {
		d := c.speaks()
		a, err := c.once(ctx, r, d)
		if err == nil {
			return a, nil
		}
		if !c.learn(d, err) {
			return Answer{}, err.sealed(c.cfg.Key)
		}
	}
}

// once sends r and returns all of the answer or an error.
func (c *Client) once(ctx context.Context, r Request, d dialect) (Answer, *Error) {
	x := &exchange{cfg: c.cfg, progress: r.Progress}
	var err error
	if x.messages, err = encodeMessages(r.Messages); err != nil {
		return Answer{}, refused("the conversation cannot be encoded: %v", err)
	}
	ctx = x.begin(ctx)
	defer x.end()
	asm := &assembler{cfg: c.cfg}
	err = c.send(ctx, c.request(r, d), asm)
	if e := x.verdict(ctx, err); e != nil {
		return Answer{}, e
	}
	if x.whole {
		return asm.whole(x.raw, x.header)
	}
	return asm.answer(x)
}

// request is what go-openai is handed; the messages and the temperature go in below it.
func (c *Client) request(r Request, d dialect) goopenai.ChatCompletionRequest {
	q := goopenai.ChatCompletionRequest{Model: c.cfg.Model, Stream: c.cfg.Stream}
	if d.maxTokens {
		q.MaxTokens = c.cfg.MaxOutput //nolint:staticcheck // for servers that know no other name
	} else {
		q.MaxCompletionTokens = c.cfg.MaxOutput
	}
	if c.cfg.Stream && !d.noUsage {
		q.StreamOptions = &goopenai.StreamOptions{IncludeUsage: true}
	}
	for _, t := range r.Tools {
		f := &goopenai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
		if len(t.Parameters) == 0 {
			f.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		q.Tools = append(q.Tools, goopenai.Tool{Type: goopenai.ToolTypeFunction, Function: f})
	}
	return q
}

func (c *Client) send(ctx context.Context, q goopenai.ChatCompletionRequest, asm *assembler) error {
	if !q.Stream {
		// What it decodes is left alone: encoding/json has replaced bad bytes in it by then. The
		// exchange keeps the body.
		_, err := c.api.CreateChatCompletion(ctx, q)
		return err
	}
	s, err := c.api.CreateChatCompletionStream(ctx, q)
	if err != nil {
		return err
	}
	defer s.Close()
	for {
		line, err := s.RecvRaw()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := asm.chunk(line); err != nil {
			return err
		}
	}
}

func (c *Client) speaks() dialect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dialect
}

// learn says whether e is about a member of the request that can be left out, and remembers it. used is
// what the failed request did, so that each member is given up at most once.
func (c *Client) learn(used dialect, e *Error) bool {
	if e.Type != agent.ErrBadRequest || e.Status == 0 {
		return false
	}
	text := strings.ToLower(string(e.raw))
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.cfg.Stream && !used.noUsage && strings.Contains(text, "stream_options"):
		c.dialect.noUsage = true
	case c.cfg.MaxOutput > 0 && !used.maxTokens && strings.Contains(text, "max_completion_tokens") &&
		anyOf(text, "unsupported", "not support", "unrecognized", "unknown", "unexpected", "not permitted", "not allowed"):
		c.dialect.maxTokens = true
	default:
		return false
	}
	return true
}
