package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
)

// An approvalRef is what a person typed to name a request: its id, the key of its action, or where it waits.
type approvalRef struct {
	address      // where it is, as far as that is known
	scope        agent.Scope
	key          string // "" when only the place was named
	ask          int    // 0: the latest
	compensation bool
}

// parseApproval reads the id of a request, the key of an action, or SESSION or SESSION/turn-N.
func parseApproval(s string) (approvalRef, error) {
	key, ask, numbered := strings.Cut(s, "#")
	if !numbered && !strings.Contains(s, "~") {
		at, err := parseAddress(s)
		return approvalRef{address: at}, err
	}
	k, err := parseKey(key)
	n, numErr := strconv.Atoi(ask)
	if err != nil || numbered && (numErr != nil || n < 1 || strconv.Itoa(n) != ask) {
		return approvalRef{}, usageError("%q is no id of an approval request; copy it whole from: holdfast approvals", line(s, agent.MaxKey))
	}
	return approvalRef{address: address{session: k.Scope.Session, turn: k.Place.Turn}, scope: k.Scope, key: key, ask: n, compensation: k.Undo > 0}, nil
}

// whole says whether the reference is a request's full id, so that a decision on it needs no look at it.
func (r approvalRef) whole() bool { return r.ask > 0 }

// A foundApproval is a request and where it is.
type foundApproval struct {
	agent.Approval
	workflow string
	scope    agent.Scope
	refused  []agent.Refusal // decisions on it that did not count
	unseen   bool            // the turn has not said it: only id, digest and place are known
	silent   *silentTurn     // why it is the history's word and not the turn's
	moved    string          // that another build asked for it than the one that goes on
}

// A silentTurn is a turn that did not say what waits in it.
type silentTurn struct {
	workflow string
	err      error
}

func (s *silentTurn) Error() string {
	return fmt.Sprintf("the turn %q does not answer: %s", s.workflow, line(s.err.Error(), 200))
}

func (s *silentTurn) Unwrap() error { return s.err }

// findApproval finds the one request that a reference means. Of a turn that does not answer it is the one that its history
// has.
func (c *conn) findApproval(ctx context.Context, r approvalRef) (foundApproval, error) {
	workflows, err := c.askers(ctx, r)
	if err != nil {
		return foundApproval{}, err
	}
	var (
		found  []foundApproval
		silent error
		absent = 0
	)
	for _, id := range workflows {
		var v agent.ApprovalsView
		switch err := c.ask(ctx, id, agent.QueryApprovals, &v); {
		case ctx.Err() != nil:
			return foundApproval{}, ctx.Err()
		case isNotFound(err):
			absent++
		case err != nil:
			s := &silentTurn{id, err}
			v, _ := c.recorded(ctx, id)
			here := r.among(id, v)
			for i := range here {
				here[i].silent = s
			}
			found, silent = append(found, here...), s
		default:
			found = append(found, r.among(id, v)...)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return foundApproval{}, r.several(found)
	case silent != nil:
		return foundApproval{}, silent
	case r.turn != 0 && absent == len(workflows):
		return foundApproval{}, noTurn(r.session, r.turn)
	}
	return foundApproval{}, r.nothing()
}

// askers lists the workflows in which the request may wait: a compensation's waits in the turn, or in one that
// was started to compensate it.
func (c *conn) askers(ctx context.Context, r approvalRef) ([]string, error) {
	if r.turn != 0 && !r.compensation {
		return []string{r.workflow()}, nil
	}
	var ids []string
	prefix := agent.TurnID(r.session, 0)
	prefix = strings.TrimSuffix(prefix, "0")
	switch {
	case r.turn != 0:
		ids = append(ids, r.workflow())
		prefix = r.workflow() + "-undo-"
	default:
		if _, err := c.describeSession(ctx, r.session); err != nil {
			return nil, err
		}
		n, err := c.runningTurn(ctx, r.session) // visibility lags behind; the session's history does not
		if err != nil {
			return nil, err
		}
		if n != 0 {
			ids = append(ids, agent.TurnID(r.session, n))
		}
	}
	err := c.list(ctx, waitingQuery+fmt.Sprintf(" AND WorkflowId STARTS_WITH '%s'", prefix), func(info *workflowpb.WorkflowExecutionInfo) bool {
		if id := info.GetExecution().GetWorkflowId(); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
		return true
	})
	return ids, err
}

// among picks what the reference means of what a turn says: a named request in any state, else those that wait.
func (r approvalRef) among(workflow string, v agent.ApprovalsView) []foundApproval {
	var out []foundApproval
	for _, a := range v.Approvals {
		f := foundApproval{Approval: a, workflow: workflow, scope: v.Scope}
		switch {
		case r.key == "" && a.Outcome != agent.OutcomePending, r.key != "" && a.Key != r.key, r.ask != 0 && a.Ask != r.ask:
			continue
		case r.key != "" && len(out) == 1: // the latest ask of the key
			if a.Ask > out[0].Ask {
				out[0] = f
			}
			continue
		}
		out = append(out, f)
	}
	for i := range out {
		for _, x := range v.Refused {
			if x.ID == out[i].ID {
				out[i].refused = append(out[i].refused, x)
			}
		}
	}
	return out
}

func (r approvalRef) several(found []foundApproval) error {
	ids := ""
	for _, f := range found[:min(len(found), 10)] {
		ids += "\n  " + line(f.ID, agent.MaxKey) + "  " + briefAction(f.Tool, f.Args)
	}
	return withHint(usageError("%s approvals wait there; say which:%s", strconv.Itoa(len(found)), ids),
		"see all: holdfast approvals --session %s", r.session)
}

func (r approvalRef) nothing() error {
	if r.key == "" {
		return withHint(fmt.Errorf("nothing waits for an approval in %s", r.address), "see what was decided: holdfast show %s; what waits elsewhere: holdfast approvals", r.address)
	}
	return withHint(fmt.Errorf("turn %d of session %q knows no such approval request", r.turn, r.session),
		"it may have ended long ago; see the turn: holdfast show %s --turn %d", r.session, r.turn)
}

// distrust says what in a request does not fit together, so that nobody decides on something else than is
// shown. Verified is whether the digest could be computed from the request itself.
func (f *foundApproval) distrust() (verified bool, err error) {
	switch canonical, argErr := approval.Canonical([]byte(f.Args)); {
	case argErr != nil:
		return false, argErr
	case canonical != f.Args:
		return false, errors.New("its arguments are not in canonical form")
	case f.ID != agent.ApprovalID(f.Key, f.Ask):
		return false, errors.New("its id is not that of its key")
	case !f.Action.Valid():
		return false, errors.New("its digest is none")
	}
	k, err := parseKey(f.Key)
	switch {
	case err != nil:
		return false, err
	case k.Scope != f.scope || !mayWait(k, f.workflow):
		return false, errors.New("its key is another session's or turn's")
	case k.Undo == 0 && f.Key != agent.ActionKey(f.scope, f.Place, f.Action):
		return false, errors.New("its key is another action's")
	case f.Terms.Version == "":
		return false, nil
	}
	computed := approval.Action{Tool: f.Tool, Version: f.Terms.Version, Args: f.Args, Resource: f.Terms.Resource, Place: f.Place}.Digest()
	if computed != f.Action {
		return false, fmt.Errorf("the digest of what it shows is %s", computed)
	}
	return true, nil
}

// mayWait says whether an action of that key can wait in a workflow.
func mayWait(k agent.Key, workflow string) bool {
	at, err := parseAddress(workflow)
	return err == nil && at.session == k.Scope.Session && at.turn == k.Place.Turn
}

// completeApprovals offers the requests that wait.
func (a *App) completeApprovals(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	session, _, _ := strings.Cut(prefix, "~")
	if !strings.Contains(prefix, "~") || !agent.ValidSessionID(session) {
		session = ""
	}
	return a.offer(cmd.Context(), func(ctx context.Context, c *conn) []string {
		list, _ := c.waiting(ctx, session, 50, a) // what was found until an error is offered
		var ids []string
		for _, w := range list.Approvals {
			if strings.HasPrefix(w.ID, prefix) {
				ids = append(ids, w.ID+"\t"+briefAction(w.Tool, w.Args))
			}
		}
		return ids
	})
}
