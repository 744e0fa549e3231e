package cell

import "slices"

// An Omission is what the table leaves out, and why. Each pattern is a list of alternatives, separated by commas, in which
// * stands for anything; one that begins with "not" is all but those, and an empty one is everything. A boundary is a
// place of package failpoint, or "none" for what has no place. A fault is its kind with its argument, as in "storm model
// 429 seconds".
type Omission struct {
	Boundary, Fault, Destination string
	Why                          string
}

// LeftOut returns everything that the table leaves out: each place, and none, with each fault at each destination either
// is in it or is here.
func LeftOut() []Omission {
	return slices.Concat(impossible(), elsewhere(), sameEverywhere(), likeAnother(), damageLeftOut(), outsideLeftOut())
}

// impossible is what there is not.
func impossible() []Omission {
	return []Omission{
		{"none", "kill, freeze, hang *, error*, crash, revoke, rebuild, damage *, slow *", "", "it strikes at a place"},
		{"not none", "lost *, storm *, word *, clock *, renew, cold, late", "", "it has no place: it is there all the time, or with the requests and the signals that it is about"},
		{"", "storm destination *, link destination *", "mcp-*", "an MCP server over stdio is a process of the worker's: there is no connection, and no status"},
		{"none", "lost error, lost entered *", "mcp-*", "an MCP server has no 5xx: its error says that nothing was done, and one that says so falsely cannot be found out"},
		{"undo.*", "", "mcp-*", "the bank takes nothing back; which adapter sends a compensation makes no difference to what it is"},
		{"tool.after_send, model.after_request", "error", "", "what fails there is a connection behind a request that has left: as lost lose and lost drop have it"},
		{"not store.*", "error E*", "", "these are errors of the operating system's, which the store meets"},
		{"store.*", "error", "", "a store fails with an error of the operating system's"},
		{"store.after_write", "error ENOSPC, error EROFS", "", "what is written has had its room"},
		{"store.before_read", "error ENOSPC, error EROFS", "", "reading needs no room"},
	}
}

// elsewhere is what strikes where most hangs on it, and nowhere else.
func elsewhere() []Omission {
	const link = "a connection turns bad where most hangs on it, and is so for whatever comes next"
	const authority = "authority is looked at when an answer is taken in, before an approved action and by admission; a change at any other moment is found at the next of these"
	const build = "another build takes over like any worker; what it may see otherwise is an effect's admission, an answer taken in and a workflow's replay"
	const hang = "whoever is only slow there is in nobody's way: nothing is timed that a freeze does not hold up too"
	return []Omission{
		{"not none, model.before_request", "link model *", "", link},
		{"not none, activity.before_completion", "link server *", "", link},
		{"not none, tool.before_dispatch", "link destination *", "", link},
		{"not none", "link * slow", "", "a slow connection is slow all the time"},
		{"none", "link * half-open, link * deaf, link * cut", "", "all the time there would be nothing that anybody could do"},
		{"not none, model.after_adoption, tool.approved, tool.before_*, tool.after_dispatch, tool.after_commit", "revoke", "", authority},
		{"not none, model.before_request, model.after_adoption, tool.approved, tool.before_dispatch, tool.after_dispatch, tool.after_commit, task.after_completion", "rebuild", "", build},
		{"not none, tool.after_dispatch, tool.last_check, model.after_answer, approval.after_judgement, activity.before_completion, task.before_completion, store.after_write", "hang *", "", hang},
		{"not none, store.before_*", "slow *", "", "a slow store is slow before it has done something; others have a connection"},
	}
}

// sameEverywhere is what makes no difference between destinations.
func sameEverywhere() []Omission {
	const unsent = "nothing has been sent for what happens here: it is tried where most would show, at a destination that ignores keys and can be asked"
	const outcome = "the outcome is on record or in history, and the destination is not asked any more"
	return []Omission{
		{"worker.*, model.*, approval.*, tool.approved", "", "not http-asked", unsent},
		{"activity.*, task.*, handover.*, ending.*, continue.*", "", "not http-asked", outcome},
		{"store.*", "", "not http-asked", "objects are the same whatever the destination: what a class makes of one that is not there is tried at the tool's places"},
		{"none", "storm model *, link model *, link server *, word *, cold", "not http-asked", unsent},
		{"none", "clock *, renew, late", "mcp-*", "it is about records and histories, which are the same over MCP"},
		{"tool.before_*, tool.after_adoption", "freeze, error, crash", "not http-asked", "the class is asked while an effect is in doubt; that it is asked at no other time, deaths prove at each destination"},
		{"tool.before_*", "rebuild", "not http-asked", unsent},
		{"tool.before_admission", "revoke", "not http-asked", unsent},
		{"tool.*", "revoke, rebuild", "mcp-*", "the same admission and the same records: what MCP does otherwise is the sending"},
		{"undo.after_plan, undo.before_*, undo.after_adoption", "", "not http-asked", unsent},
	}
}

// likeAnother is what comes to the same as something that is in the table.
func likeAnother() []Omission {
	const told = "the server is not told, and is told again: as after a failure there, or after a freeze before it"
	const undo = "a compensation is an effect: this has struck effects at the place of the same name"
	return []Omission{
		{"worker.ready", "freeze, error, crash", "", "nothing is in hand: as a worker that was never started"},
		{"model.before_request", "freeze, crash", "", "nothing is in hand: as before any activity"},
		{"tool.after_dispatch", "crash", "mcp-*", "nothing was sent: as over HTTP"},
		{"tool.last_check, tool.after_send", "crash", "not http-asked", "the attempt lives and hears its answer: as at tool.after_commit"},
		{"tool.after_commit", "crash", "mcp-keyed, mcp-blind", "the server comes back to an attempt that has its answer, whoever gave it: as over HTTP"},
		{"tool.after_dispatch", "error", "mcp-*", "it fails before the adapter is reached"},
		{"tool.last_check", "error", "not http-asked", "nothing has left, and this attempt knows it: it tries again itself, whatever the class"},
		{"tool.after_commit", "error", "not http-asked", "the attempt is over without a word, as after a death"},
		{"tool.after_dispatch", "hang *", "mcp-*", "it is held up before the adapter is reached"},
		{"tool.last_check", "hang *", "not http-asked, mcp-asked", "who may send again after that is only who can be asked; a key makes it harmless, and once is once"},
		{"activity.after_completion", "crash", "", told},
		{"handover.after, ending.after, continue.after", "error", "", "the server has it and is told again: as at task.after_completion"},
		{"task.before_completion, handover.before, ending.before, continue.before", "crash", "", told},
		{"store.before_write, store.before_read", "crash", "", "the worker lives, and what it does with the store is not the server's: as after the write"},
		{"store.before_read", "freeze", "", "reading leaves nothing behind"},
		{"undo.after_dispatch", "freeze", "http-keyed, http-blind", undo},
		{"undo.after_plan, undo.before_*, undo.after_adoption", "freeze, error", "", undo},
		{"undo.before_*, undo.after_dispatch, undo.after_adoption", "crash", "", undo},
		{"undo.after_dispatch, undo.after_commit", "error, crash", "not http-asked", undo},
	}
}

// damageLeftOut is of objects. See docs/store.md.
func damageLeftOut() []Omission {
	const next = "an object is damaged where it is the next thing to be needed; where nobody needs it, nobody sees it"
	const checksum = "cut short and flipped are found out by the same checksum: both are tried on dispatches and on segments"
	return []Omission{
		{"", "damage *", "mcp-*", "the records are the same over MCP"},
		{"not none, tool.after_commit", "damage dispatches *", "", next},
		{"not none, tool.after_adoption, model.after_adoption", "damage results *", "", next},
		{"not none, tool.before_dispatch", "damage intents *", "", next},
		{"not none, model.after_adoption", "damage segments *", "", next},
		{"not none, model.before_request", "damage bodies *", "", next},
		{"not none", "damage results truncated, damage intents truncated, damage bodies truncated", "", checksum},
		{"tool.after_commit", "damage dispatches truncated", "not http-asked", checksum},
		{"tool.before_dispatch", "damage intents *", "not http-asked", "nothing has been sent, and no class is asked"},
		{"tool.after_commit", "damage dispatches missing", "not http-keyed", "outside the promise: a store that loses what it has acknowledged leaves nothing by which a first send could be known, and a destination that ignores keys gets a second"},
	}
}

// outsideLeftOut is of what destinations say and what lies between.
func outsideLeftOut() []Omission {
	return []Omission{
		{"none", "lost refuse", "mcp-keyed, mcp-blind", "an MCP server's error is a no, whatever the class"},
		{"none", "lost entered *", "not http-asked", "to the worker it is the answer of a storm: only who can be asked finds out that it was entered"},
		{"none", "storm destination 429 date, storm destination 503 *", "not http-keyed", "only who sends again waits for the time that is named; to the others each is as 429 in seconds"},
		{"none", "link destination slow", "not http-asked", "an answer that comes slowly is an answer"},
		{"tool.before_dispatch", "link destination cut", "http-asked", "nothing leaves where nobody takes the connection: as at http-blind"},
	}
}
