package activities

import (
	"context"
	"encoding/json"

	"github.com/gowebpki/jcs"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/failpoint"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/transcript"
)

// Model does three things in a row: it asks the model, canonicalises what the model asks for, and has
// policy decide on it. The answer is recorded before the activity completes, so that an attempt after a
// death adopts it and does not pay again. The record is looked for in every attempt, the first too: a
// reset run starts again with attempt 1. That is one read of the store a step.
func (a *Activities) Model(ctx context.Context, in agent.ModelInput) (agent.ModelResult, error) {
	p := begin(ctx, "reading the conversation")
	defer p.stop()
	return a.model(p, in) //nolint:contextcheck // the pulse carries the context of its attempt
}

func (a *Activities) model(p *pulse, in agent.ModelInput) (agent.ModelResult, error) {
	snap := a.Current()
	if err := a.admit(snap, in.Scope, in.Store, in.Serial); err != nil {
		return agent.ModelResult{}, err
	}
	def, err := a.definition(p.ctx, snap, in.Scope, in.Definition)
	if err != nil {
		return agent.ModelResult{}, err
	}
	r := &modelRun{
		Activities: a, pulse: p, snap: snap, in: in, space: a.Store.Space(in.Scope),
		desk: desk{snap: snap, def: def, scope: in.Scope, place: in.Place, senders: in.Senders},
	}
	if r.key, err = modelKey(in); err != nil {
		return agent.ModelResult{}, snap.final(agent.ErrInternal, "the model call has no key: %v", err)
	}
	return r.run()
}

// modelKey names a model call by what it is asked: the head, the new entries and the agent.
func modelKey(in agent.ModelInput) (string, error) {
	b, err := json.Marshal(struct {
		Head       agent.Head    `json:"head"`
		Entries    []agent.Entry `json:"entries"`
		Definition string        `json:"definition"`
	}{in.Head, in.Entries, in.Definition})
	if err == nil {
		b, err = jcs.Transform(b)
	}
	if err != nil {
		return "", err
	}
	return agent.ModelKey(in.Scope, in.Place, agent.DigestOf(b)), nil
}

// modelRun is one attempt of one model call.
type modelRun struct {
	*Activities
	*pulse
	snap  *Snapshot
	in    agent.ModelInput
	space *store.Space
	desk  desk
	key   string
	model Model
}

func (r *modelRun) run() (agent.ModelResult, error) {
	rec, err := r.space.Result(r.ctx, r.key)
	switch {
	case err == nil && rec.Model != nil:
		return r.adopt(*rec.Model)
	case err != nil && !definite(err):
		return agent.ModelResult{}, r.snap.storeTrouble(r.ctx, "looking for the answer of an earlier attempt", err)
	}
	// A record that cannot be trusted is as good as none: asking again costs money and changes nothing.
	var ok bool
	if r.desk.def.Model, r.model, ok = r.snap.model(r.desk.def); !ok {
		return agent.ModelResult{}, r.troubled(&openai.Error{Type: agent.ErrStaleConfig, Retry: true, Message: r.snap.noModel(r.desk.def)})
	}
	t, err := r.thread(r.ctx, r.snap, r.in)
	if err != nil {
		return agent.ModelResult{}, err
	}
	answer, err := r.ask(t)
	if err != nil {
		return agent.ModelResult{}, err
	}
	return r.keep(t, answer)
}

// keep writes an answer down: a segment of the transcript with everything that is new, then the record
// that makes the answer the one of this call. The answer is paid for, so a store in trouble is tried for as
// long as the attempt may last.
func (r *modelRun) keep(t thread, answer openai.Answer) (agent.ModelResult, error) {
	r.phase("recording the answer")
	ids := callIDs(answer.Calls, t.ids(), r.in.Place)
	said := transcript.Entry{Role: agent.RoleAssistant, Text: answer.Text, Refusal: answer.Refusal}
	for i, c := range answer.Calls {
		said.Calls = append(said.Calls, transcript.Call{ID: ids[i], Name: c.Name, Args: c.Args})
	}
	res := r.result(t, answer, ids)
	if err := r.shorten(&res, &said); err != nil {
		return agent.ModelResult{}, r.snap.storeTrouble(r.ctx, "storing the answer", err)
	}
	head, err := persist(r.ctx, func(ctx context.Context) (agent.Head, error) {
		return r.Log.Append(ctx, r.in.Scope, r.in.Head, append(stored(r.in.Entries), said))
	})
	if err != nil {
		return agent.ModelResult{}, r.snap.storeTrouble(r.ctx, "appending the answer to the transcript", err)
	}
	res.Head = head
	if res, err = r.record(res); err == nil && !res.Adopted {
		r.phase("looking at what is asked for")
		r.desk.inform(r.ctx, r.claims(r.in.Scope, r.in.Root), res.Calls) // after the record: it may take a while, and the answer is paid for
	}
	res.Calls = told(res.Calls)
	return res, err
}

// shorten moves a long answer into the store and leaves its beginning in the result.
func (r *modelRun) shorten(res *agent.ModelResult, said *transcript.Entry) error {
	if len(res.Text) <= agent.MaxAnswer {
		return nil
	}
	body, err := persist(r.ctx, func(ctx context.Context) (agent.Body, error) {
		return r.space.PutBody(ctx, []byte(res.Text), "")
	})
	if err != nil {
		return err
	}
	if said.Text == res.Text {
		said.Text, said.Body = "", &body
	}
	res.Text, res.Body = head(res.Text, maxBeginning), &body
	return nil
}

// maxBeginning is how much of a long answer, in bytes, stands in the result.
const maxBeginning = 4 << 10

func (r *modelRun) result(t thread, answer openai.Answer, ids []string) agent.ModelResult {
	usage := answer.Usage
	usage.Micros = r.model.Price.Micros(usage)
	res := agent.ModelResult{
		Finish: answer.Finish, Text: answer.Text, Calls: r.desk.calls(answer.Calls, ids, answer.Finish),
		Usage: usage, Serial: r.snap.newer(r.in.Serial), Gaps: len(t.gaps) + t.lost,
		Producer: agent.Producer{Model: cut(answer.Model, maxWords), Fingerprint: cut(answer.Fingerprint, maxWords), Build: r.Build},
	}
	if !r.desk.asDefined() {
		res.Producer.Tools = r.desk.schemas().Short()
	}
	if res.Text == "" {
		res.Text = answer.Refusal
	}
	return res
}

// record makes res the answer of this call, unless another attempt's already is: then that one counts,
// because the workflow must not see two.
func (r *modelRun) record(res agent.ModelResult) (agent.ModelResult, error) {
	first, standing, err := keepResult(r.ctx, r.space, store.Result{Key: r.key, Model: &store.ModelRecord{
		Result: res, Prompt: r.desk.prompt(), Tools: r.desk.schemas(), Policy: r.snap.Policy.Version(),
	}})
	if err := failpoint.AtErr(failpoint.ModelAfterAdoption); err != nil {
		return res, r.snap.retryable(agent.ErrStore, 0, "%v", err)
	}
	if err == nil && !first && standing.Model != nil {
		return r.adopt(*standing.Model)
	}
	// Without its record the answer is as good, as long as nobody has to look for it.
	return res, nil
}

// prompt returns the digest of the instructions.
func (d *desk) prompt() agent.Digest { return agent.DigestOf([]byte(d.def.Instructions)) }

// offered returns the tools that the model is offered: those that the agent lists and this worker has, of a pinned
// agent in the versions that its definition names.
func (d *desk) offered() []openai.Tool {
	var out []openai.Tool
	for _, ref := range d.def.Tools {
		if t, ok := d.lookup(ref.Name); ok {
			spec := t.Spec()
			out = append(out, openai.Tool{Name: spec.Name, Description: spec.Description, Parameters: spec.Parameters})
		}
	}
	return out
}

// asDefined says whether the tools are those that the agent was defined with.
func (d *desk) asDefined() bool {
	for _, ref := range d.def.Tools {
		if t, ok := d.snap.Tools.Lookup(ref.Name); !ok || t.Spec().Version != ref.Version {
			return false
		}
	}
	return true
}

// schemas returns the digest of what the model is told about its tools.
func (d *desk) schemas() agent.Digest {
	b, err := json.Marshal(d.offered())
	if err != nil {
		return "" // a schema that is not JSON never gets into a tool.Set
	}
	return agent.DigestOf(b)
}
