package starter

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/worker"
)

// completionTimeout bounds what a press of the tab key may take.
const completionTimeout = 2 * time.Second

// offer asks the server for what may be completed, for a moment only: without a server nothing is offered.
func (a *App) offer(ctx context.Context, find func(context.Context, *conn) []string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	c, err := a.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.Close()
	return find(ctx, c), cobra.ShellCompDirectiveNoFileComp
}

// completeFiles lets a flag take any file: without it the root's default offers nothing.
func completeFiles(cmd *cobra.Command, flags ...string) {
	for _, name := range flags {
		_ = cmd.RegisterFlagCompletionFunc(name, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		})
	}
}

// completeApprovers offers the people that the policy of the configuration here names, if there is one.
func (a *App) completeApprovers(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	cfg, err := worker.LoadPolicy(a.config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return prefixed(maps.Keys(cfg.Policy.Approvers), prefix), cobra.ShellCompDirectiveNoFileComp
}

// completeUncertain offers the keys of the effects that wait for somebody's word.
func (a *App) completeUncertain(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.offer(cmd.Context(), func(ctx context.Context, c *conn) []string {
		f := newFinder(c, nil)
		defer f.close()
		found, _ := f.attention(ctx) // what was found until an error is offered
		var keys []string
		for _, m := range found {
			if (m.Kind == matterUncertain || m.Kind == matterConflict) && strings.HasPrefix(m.Key, prefix) {
				keys = append(keys, m.Key+"\t"+line(m.What, 80))
			}
		}
		return keys
	})
}

// prefixed returns those of the names that begin with a prefix, sorted.
func prefixed(names iter.Seq[string], prefix string) []string {
	var out []string
	for name := range names {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// completeAgents offers the agents of the configuration here, if there is one.
func (a *App) completeAgents(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	cfg, err := worker.LoadStore(a.config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return prefixed(maps.Keys(cfg.Agents), prefix), cobra.ShellCompDirectiveNoFileComp
}

// completeSessions offers the open sessions.
func (a *App) completeSessions(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if prefix != "" && !agent.ValidSessionID(prefix) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", agent.WorkflowSession)
	if prefix != "" {
		query += fmt.Sprintf(" AND WorkflowId STARTS_WITH '%s'", prefix)
	}
	return a.offer(cmd.Context(), func(ctx context.Context, c *conn) []string {
		var ids []string
		_ = c.list(ctx, query, func(info *workflowpb.WorkflowExecutionInfo) bool { // what was found until an error is offered
			id := info.GetExecution().GetWorkflowId()
			if name := c.attribute(info, agent.AttributeAgent); name != "" {
				id += "\tagent " + line(name, 64)
			}
			ids = append(ids, id)
			return len(ids) < 50
		})
		return ids
	})
}
