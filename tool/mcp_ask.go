package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/expr"
)

// An MCPAsk is a call of another tool of the same server, by which a tool asks about a call. It changes nothing: the
// configuration says so by naming it. No idempotency key goes with it but in the arguments that name it.
type MCPAsk struct {
	// Tool is the server's own name of the tool that is asked.
	Tool string
	// Args are CEL expressions over args (the call's arguments) and key (its idempotency key), by the name of the
	// asked tool's argument.
	Args map[string]string
	// Found and Absent are CEL conditions over error (bool: the asked tool reported one), text (what it said), body
	// (its structured content, or its text as JSON, or null), args and key, by which Reconcile knows what became of
	// the call. Without Absent nothing proves that it did not happen. Observe has neither.
	Found, Absent string
}

// A question is an MCPAsk of one tool.
type question struct {
	asked *mcpTool // with the asking tool's timeout
	args  *expr.Object
	judge judge // of a reconcile
}

// compile compiles what is asked.
func (q *MCPAsk) compile(observe bool) (*question, error) {
	call, err := expr.New(map[string]expr.Type{"args": expr.Any, "key": expr.Text})
	if err != nil {
		return nil, err
	}
	out := &question{}
	if out.args, err = call.Object(q.Args); err != nil {
		return nil, err
	}
	if observe {
		if q.Found+q.Absent != "" {
			err = errors.New("found and absent belong to reconcile; remove them")
		}
		return out, err
	}
	answer, err := expr.New(map[string]expr.Type{
		"error": expr.Bool, "text": expr.Text, "body": expr.Any, "args": expr.Any, "key": expr.Text,
	})
	if err != nil {
		return nil, err
	}
	out.judge, err = newJudge(answer, q.Found, q.Absent)
	return out, err
}

// checkAsks finds out before the server is started what is wrong with a tool's asks.
func (c MCPConfig) checkAsks(name string, d Declaration) error {
	if err := checkExtras(Spec{Name: name, Class: d.Class, AbsentAfter: d.AbsentAfter}, d.Reconcile != nil); err != nil {
		return err
	}
	if err := c.checkAsk(name, d.Reconcile, false); err != nil {
		return fmt.Errorf("tool %.80q: reconcile: %w", name, err)
	}
	if err := c.checkAsk(name, d.Observe, true); err != nil {
		return fmt.Errorf("tool %.80q: observe: %w", name, err)
	}
	return nil
}

func (c MCPConfig) checkAsk(name string, q *MCPAsk, observe bool) error {
	if q == nil {
		return nil
	}
	if q.Tool == name {
		return errors.New("it asks the tool itself, which would do it again; name one that only reads")
	}
	if class := c.Tools[q.Tool].Class; class != "" && class != agent.ClassRead {
		return fmt.Errorf("it asks %.80q, which is declared %s; name one that only reads", q.Tool, class)
	}
	_, err := q.compile(observe)
	return err
}

// unasked says which tool that is to be asked the server does not list.
func unasked(d Declaration, list toolList) string {
	for _, q := range []*MCPAsk{d.Reconcile, d.Observe} {
		if q != nil && !slices.ContainsFunc(list, func(t remoteTool) bool { return t.Name == q.Tool && t.problem == "" }) {
			return fmt.Sprintf("it asks %.80q, which the server does not list, or not usably; mend the name", q.Tool)
		}
	}
	return ""
}

// asks makes what the tool can be asked.
func (t *mcpTool) asks(d Declaration, list toolList) (x extras, err error) {
	ask := func(q *MCPAsk, observe bool) *question {
		var out *question
		if out, err = q.compile(observe); err == nil {
			out.asked = &mcpTool{
				server: t.server, remote: q.Tool, digest: list.digest(q.Tool),
				spec: Spec{Name: t.spec.Name, Class: agent.ClassRead, Timeout: t.spec.Timeout},
			}
		}
		return out
	}
	if d.Reconcile != nil {
		x.reconcile = ask(d.Reconcile, false)
	}
	if d.Observe != nil && err == nil {
		x.observe = observeFunc(ask(d.Observe, true).observe)
	}
	return x, err
}

// Reconcile asks what became of the call. Only what the asked tool itself says counts, never that it could not be
// asked.
func (q *question) Reconcile(ctx context.Context, c Call) (Finding, Result, error) {
	in, err := callInput(c)
	if err != nil {
		return Unknown, Result{}, err
	}
	r, err := q.ask(ctx, c, in)
	if err != nil {
		return Unknown, Result{}, err
	}
	res := r.convert()
	in["error"], in["text"], in["body"] = expr.Of(r.IsError), expr.Of(""), expr.Null()
	if res.textual() {
		in["text"], in["body"] = textOf(res.Data), jsonOf(res.Data)
	}
	if r.structured() {
		in["body"] = jsonOf(r.Structured)
	}
	finding, err := q.judge.judge(in)
	if err != nil {
		return Unknown, Result{}, fmt.Errorf("%s: %w", q.said(res), err)
	}
	if finding != Found {
		return finding, Result{}, nil
	}
	return Found, q.asked.masked(res), nil
}

func (q *question) observe(ctx context.Context, c Call) (Result, error) {
	in, err := callInput(c)
	if err != nil {
		return Result{}, err
	}
	r, err := q.ask(ctx, c, in)
	if err != nil {
		return Result{}, err
	}
	res := r.convert()
	if r.IsError {
		return Result{}, fmt.Errorf("%s, which is no state", q.said(res))
	}
	res.Data = stable(res.Data)
	return q.asked.masked(res), nil
}

// ask calls the asked tool and returns what it itself said, be it an error.
func (q *question) ask(ctx context.Context, c Call, in expr.Input) (r wireResult, err error) {
	t := q.asked
	args, err := q.args.JSON(in)
	if err != nil {
		return r, fmt.Errorf("what %q is to be asked cannot be made: %w", t.remote, err)
	}
	a, _, err := t.call(ctx, Call{Args: string(args), Attempt: c.Attempt, Scope: c.Scope, Place: c.Place})
	switch {
	case err != nil:
		return r, err
	case a.err != nil:
		return r, t.refused(a.err)
	case len(a.result) > 2*expr.MaxJSON:
		return r, t.server.link.about(fmt.Errorf("%q answered with %d bytes, too many to look at", t.remote, len(a.result)))
	case json.Unmarshal(a.result, &r) != nil || r.ResultType == "input_required":
		return r, t.server.link.about(fmt.Errorf("%q did not answer in the protocol's form", t.remote))
	}
	return r, nil
}

// said quotes an answer for a person.
func (q *question) said(res Result) string {
	text := "something that is no text"
	if res.textual() {
		text = strings.TrimSpace(printable(q.asked.server.link.mask.String(string(res.Data))))
	}
	return fmt.Sprintf("%q answered: %s", q.asked.remote, clip(text, maxErrorBody))
}
