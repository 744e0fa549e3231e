package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// An envelope is a completion or a chunk of one, in the members that are used.
type envelope struct {
	Model       string          `json:"model"`
	Fingerprint string          `json:"system_fingerprint"`
	Choices     []choice        `json:"choices"`
	Usage       json.RawMessage `json:"usage"`
	Error       json.RawMessage `json:"error"`
}

type choice struct {
	Index   int             `json:"index"`
	Delta   said            `json:"delta"`
	Message said            `json:"message"`
	Finish  string          `json:"finish_reason"`
	Usage   json.RawMessage `json:"usage"` // where one provider puts it
}

type said struct {
	Content  content  `json:"content"`
	Refusal  literal  `json:"refusal"`
	Calls    []piece  `json:"tool_calls"`
	Function function `json:"function_call"` // the older form of a single call
}

// An assembler makes an answer of what arrives. It is used for one answer.
type assembler struct {
	cfg    Config
	chosen *int // index of the choice that counts: the first one seen; more than one was not asked for
	calls  callList

	text, refusal literal
	function      function
	finish        string
	usage         agent.Usage
	model         string
	fingerprint   string
	chunks        int
}

// chunk takes one chunk of a stream.
func (a *assembler) chunk(line []byte) error {
	var e envelope
	if err := json.Unmarshal(line, &e); err != nil {
		return &undecodable{err}
	}
	a.chunks++
	a.head(e)
	if a.chosen == nil && len(e.Choices) > 0 {
		a.chosen = &e.Choices[0].Index
	}
	for _, c := range e.Choices {
		if c.Index == *a.chosen {
			return a.take(c, c.Delta)
		}
	}
	return nil
}

// undecodable is a chunk that is no JSON of the right shape.
type undecodable struct{ error }

// whole takes an answer in one piece.
func (a *assembler) whole(body []byte, h http.Header) (Answer, *Error) {
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return Answer{}, badAnswer("the answer is empty")
	}
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return Answer{}, notAnAnswer(a.cfg.hide(body), err)
	}
	if isSet(e.Error) {
		return Answer{}, classify(0, h, a.cfg.hide(body))
	}
	a.head(e)
	if len(e.Choices) == 0 {
		return Answer{}, badAnswer("the answer has no choices: %s", clean(string(a.cfg.hide(body)), 120))
	}
	c := slices.MinFunc(e.Choices, func(p, q choice) int { return p.Index - q.Index })
	if err := a.take(c, c.Message); err != nil {
		return Answer{}, err.(*Error) //nolint:errorlint // take has no other errors
	}
	return a.result(cmp.Or(a.finish, "stop")) // it is whole, whether or not it gives a reason
}

func notAnAnswer(body []byte, err error) *Error {
	switch {
	case body[0] == '<':
		return badAnswer("the server answered with a web page (%s); check base_url", page(body))
	case strings.Contains(err.Error(), "unexpected end"):
		return lost(agent.ErrStreamCut, "the answer ends in the middle, after %d bytes", len(body))
	}
	return badAnswer("the answer is not a completion (%v): %s", err, clean(string(body), 120))
}

// head takes what stands beside the choices.
func (a *assembler) head(e envelope) {
	a.model = cmp.Or(e.Model, a.model)
	a.fingerprint = cmp.Or(e.Fingerprint, a.fingerprint)
	a.count(e.Usage)
}

// take takes one choice's part.
func (a *assembler) take(c choice, s said) error {
	a.text = append(a.text, s.Content.literal...)
	a.refusal = append(a.refusal, s.Refusal...)
	a.count(c.Usage)
	if c.Finish != "" && c.Finish != "null" {
		a.finish = c.Finish
	}
	a.function.add(s.Function)
	if len(a.function.Arguments) > a.cfg.MaxArgs {
		return a.tooLong()
	}
	return a.pieces(s.Calls)
}

func (a *assembler) pieces(pieces []piece) error {
	a.calls.nextChunk()
	for _, p := range pieces {
		c := a.calls.put(p)
		if len(a.calls.all) > a.cfg.MaxCalls {
			return badAnswer("the answer asks for more than %d calls", a.cfg.MaxCalls)
		}
		if len(c.Arguments) > a.cfg.MaxArgs {
			return a.tooLong()
		}
	}
	return nil
}

func (a *assembler) tooLong() *Error {
	return badAnswer("the arguments of a call are longer than %d bytes", a.cfg.MaxArgs)
}

// answer returns what a stream brought. Without a finish reason it was cut, whatever [DONE] says.
func (a *assembler) answer(x *exchange) (Answer, *Error) {
	switch {
	case a.finish != "":
		return a.result(a.finish)
	case a.chunks == 0 && x.junk != nil:
		return Answer{}, badAnswer("the answer is no event stream: %s", clean(string(x.junk), 120))
	}
	e := lost(agent.ErrStreamCut, "the stream ended after %d chunks without a finish reason", a.chunks)
	e.Status = x.status
	return Answer{}, e
}

func (a *assembler) result(reason string) (Answer, *Error) {
	out := Answer{Calls: a.calls.calls(), Usage: a.usage, Model: a.model, Fingerprint: a.fingerprint}
	if len(out.Calls) == 0 {
		out.Calls = a.function.calls()
	}
	out.Text, _ = a.text.text()
	out.Refusal, _ = a.refusal.text()
	out.Usage.Calls = 1
	var err *Error
	out.Finish, err = finish(reason, out)
	if err != nil {
		return Answer{}, err
	}
	return out, nil
}
