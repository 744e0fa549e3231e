package starter

import "github.com/spf13/cobra"

const exitCodesHelp = `Exit codes:

  0    done; for run, send --follow and watch: the turn is done
  1    an error, said on stderr
  2    wrong usage
  4    the turn failed
  5    the turn was cancelled
  6    the turn used up its budget and was not given more
  7    refused: a decision, a settlement or an order arrived and does not count, with why on stderr
  8    something waits for a person: the turn; for attention, whatever it lists; for a command that
       awaits the word on what it sent, the word itself, which did not come in time
  130  interrupted; the turn goes on without this command`

const jsonHelp = `With -o json a command prints JSON on stdout and nothing else there; fields are only ever added.

run, send --follow and watch print one object a line. Each event has
  type      turn.started turn.continued turn.waiting turn.resumed turn.signal turn.ended
            model.asked model.answered model.failed
            tool.started tool.ended tool.refused tool.failed
            worker.lost worker.stuck message.accepted session.ended other notice
  time, session, workflow, run, id (of the event in the workflow's history), turn, step, call
  text      the line that is shown without -o json
  tool, args (exactly as the tool got them), key, state, note, attempt, model, usage, status, reason
  cursor    where "holdfast watch SESSION --from CURSOR" goes on after this event
and the last line is an object of type "result": session, turn, status, answer, reason, waiting, effects, usage, cursor.
A "notice" is about the connection or the worker; it is in no history and has no cursor.

start, send, cancel, close, extend, show, sessions, config check and version print one object,
transcript one for each entry.`

// topics are pages of help that are no commands.
func topics() []*cobra.Command {
	return []*cobra.Command{
		{Use: "exit-codes", Short: "What the exit codes mean", Long: exitCodesHelp},
		{Use: "json", Short: "What -o json prints", Long: jsonHelp},
	}
}
