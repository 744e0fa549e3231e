package starter

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"
	workflowpb "go.temporal.io/api/workflow/v1"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/worker"
)

// completionTimeout bounds what a press of the tab key may take.
const completionTimeout = 2 * time.Second

// completeAgents offers the agents of the configuration here, if there is one.
func (a *App) completeAgents(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	cfg, err := worker.LoadStore(a.config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for name := range cfg.Agents {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeSessions offers the open sessions.
func (a *App) completeSessions(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	if prefix != "" && !agent.ValidSessionID(prefix) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	c, err := a.connect(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer c.Close()
	query := fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", agent.WorkflowSession)
	if prefix != "" {
		query += fmt.Sprintf(" AND WorkflowId STARTS_WITH '%s'", prefix)
	}
	var ids []string
	_ = c.list(ctx, query, func(info *workflowpb.WorkflowExecutionInfo) bool { // what was found until an error is offered
		id := info.GetExecution().GetWorkflowId()
		if name := c.attribute(info, agent.AttributeAgent); name != "" {
			id += "\tagent " + line(name, 64)
		}
		ids = append(ids, id)
		return len(ids) < 50
	})
	return ids, cobra.ShellCompDirectiveNoFileComp
}
