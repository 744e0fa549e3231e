package cell

// quick names the tenth of the table that CI runs: of each group what would be missed most. None of it needs a worker of a
// build of its own, as a shifted clock does, and one cell a server of its own.
func quick() []string {
	return []string{
		// What each class promises.
		"pay/http-keyed/kill@tool.after_commit:1",
		"pay/http-asked/kill@tool.after_commit:1",
		"pay/http-blind/kill@tool.after_commit:1",
		"pay/mcp-keyed/kill@tool.after_commit:1",
		"pay/mcp-asked/kill@tool.after_commit:1",
		"pay/mcp-blind/kill@tool.after_commit:1",
		"pay/http-asked/kill@tool.after_dispatch:1",
		"pay/http-blind/kill@tool.after_dispatch:1",
		"pay/http-asked/freeze@tool.after_dispatch:1",
		"pay/http-blind/freeze@tool.after_commit:1",
		"pay/http-asked/freeze@tool.last_check:1",
		"pay/http-asked/crash@tool.after_commit:1",
		"pay/http-keyed/error@tool.after_dispatch:1",
		"pay/http-asked/kill@tool.after_dispatch:2",
		"pay/http-asked/kill@tool.approved:1",
		// What is paid for, decided, and taken back.
		"pay/http-asked/kill@model.after_answer:2",
		"pay/http-asked/kill@approval.after_judgement:1",
		"undo/http-asked/kill@undo.after_commit:1",
		"undo/http-keyed/kill@undo.after_dispatch:1",
		// What the server is told.
		"pay/http-asked/kill@activity.before_completion:4",
		"pay/http-asked/kill@task.before_completion:3",
		"pay/http-asked/kill@handover.before:1",
		"pay/http-asked/kill@ending.after:1",
		"pay/http-asked/kill@continue.after:1+renew",
		// What is bad outside.
		"pay/http-asked/error=ENOSPC@store.before_write:17-22",
		"pay/http-asked/damage=results_missing@tool.after_adoption:1",
		"pay/http-blind/lost=drop:1",
		"pay/mcp-asked/lost=silence:1",
		"pay/http-asked/storm=model_429_seconds:3",
		"pay/http-keyed/link=destination_deaf@tool.before_dispatch:1",
		// What changes, and who says so.
		"pay/http-asked/revoke@tool.after_dispatch:1+kill@tool.after_dispatch:1",
		"pay/http-keyed/rebuild@tool.after_commit:1",
		"pay/http-asked/word=duplicate",
		"pay/http-asked/word=wrong",
		"pay/http-asked/cold",
		"pay/http-keyed/kill@tool.after_commit:1+renew",
	}
}
