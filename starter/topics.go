package starter

import "github.com/spf13/cobra"

const exitCodesHelp = `Exit codes:

  0    done; for run, send --follow and watch: the turn is done
  1    an error, said on stderr
  2    wrong usage
  4    the turn failed
  5    the turn was cancelled
  6    the turn used up its budget and was not given more
  7    refused: a decision, a settlement, an order or a fork arrived and does not count, with why on stderr
  8    something waits for a person: the turn; for attention, whatever it lists; for a command that
       awaits the word on what it sent, the word itself, which did not come in time
  130  interrupted; the turn goes on without this command`

const jsonHelp = `With -o json a command prints JSON on stdout and nothing else there; fields are only ever added.

run, send --follow and watch print one object a line. Each event has
  type      turn.started turn.continued turn.waiting turn.resumed turn.signal turn.ended
            model.asked model.answered model.failed
            tool.started tool.ended tool.refused tool.failed
            approval.requested approval.arrived approval.decided approval.refused approval.expired approval.void
            effect.uncertain effect.settled effect.refused effect.conflict budget.exhausted
            compensation.planned compensation.started compensation.ended compensation.failed
            worker.lost worker.stuck version.crossed session.forked message.accepted session.ended other notice
  time, session, workflow, run, id (of the event in the workflow's history), turn, step, call
  text      the line that is shown without -o json
  tool, args (exactly as the tool got them), key, state, note, attempt, model, usage, status, reason
  approval  the id of the request; with it digest, which a decision must name, verdict, decision, expires
  by        a person, with "(claimed)" when no signature proves the name
  undoes    the key of the effect that an action compensates; cancel: what became of a wish to stop it
  command   that answers what the event asks for
  boundary  of version.crossed: what is another version now, a list of {what, tool, from, to}
  cursor    where "holdfast watch SESSION --from CURSOR" goes on after this event
and the last line is an object of type "result": session, turn, status, answer, reason, waiting, approvals, effects,
usage, spent, cursor.
approval.arrived is a signal that nobody has looked into yet; one that a cheap check refuses at once has no further
event, and the query "approvals" lists it. A "notice" is about the connection or the worker; it is in no history and has no cursor.

compensate prints events and a result as well. start, send, cancel, close, extend, show, sessions, approvals,
effects, attention, recover, config check, policy and version print one object, transcript one for each entry. What sends
a decision, a settlement or an order prints its "ref" and its "result": accepted, refused (with why) or unanswered.
attention prints a list of {kind, session, turn, workflow, approval, key, tool, what, why, since, expires, command,
build, advice, activity, attempt}, where kind is approval, uncertain, conflict, compensation, budget, stuck, held or failing. In show, "boundary" says
what is made by another version than in the step before: what is workflow code, build, definition, model, fingerprint,
prompt, tool schemas, tool version or policy; "withheld", which of the definition's tools the model was not offered. The
"source" of a request in approvals is the turn, or its history where the turn does not answer; "askedBy" is the build that
asked, where another "build" goes on. fork without a message prints its "result", "origin" and "why"; recover the
runs, the "event" from which the run before is done again, the "signals" and whether it was "recovered".
replay prints "ok", "types" ({type, runs, passed, failed, numbers}, where numbers counts by change number), "failures"
({source, workflow, run, type, number, build, findings}, a finding being {event, wanted, recorded, cause, advice}), "unread"
({source, workflow, run, type, reason}), "notRun" and "total".
deploy check prints "ok", "build", "serial", "policy", "replay" (what replay prints), "compared", "problems" (why not all could be
looked at), "errors" and "notes" ({kind, what, do, sessions, turns, first}, where first has a few workflow ids), "drift" ({kind,
agent, from, to, changes, then, sessions, turns, first}, where then is takes, keeps, asks, ends, moves or stays), "runs", one
for each that was compared, with its own drift, errors and notes, and "next".`

// topics are pages of help that are no commands.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp},
		{Use: "json", Short: "What -o json prints", Long: jsonHelp},
	}
}
