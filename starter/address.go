package starter

import (
	"strings"

	"github.com/holdfast-run/holdfast/agent"
)

// An address names a session, one of its turns, or one late compensation of a turn.
type address struct {
	session string
	turn    int // 0: the session
	undo    int // 0: the turn itself
}

// parseAddress reads SESSION, SESSION/turn-N or a workflow id of either.
func parseAddress(s string) (address, error) {
	id := strings.Replace(s, "/turn-", ":turn-", 1)
	if session, turn, m, ok := agent.ParseUndoID(id); ok {
		return address{session, turn, m}, nil
	}
	if session, turn, ok := agent.ParseTurnID(id); ok {
		return address{session, turn, 0}, nil
	}
	if agent.ValidSessionID(id) {
		return address{session: id}, nil
	}
	return address{}, usageError("%q: want SESSION or SESSION/turn-N; a session id is a letter or digit, then at most 63 letters, digits, underscores or hyphens", line(s, 120))
}

// parseTurn reads SESSION/turn-N.
func parseTurn(s string) (address, error) {
	at, err := parseAddress(s)
	if err == nil && (at.turn == 0 || at.undo != 0) {
		err = usageError("%q: want SESSION/turn-N", line(s, 120))
	}
	return at, err
}

// String is the form that a person types.
func (a address) String() string { return strings.Replace(a.workflow(), ":turn-", "/turn-", 1) }

func (a address) workflow() string {
	switch {
	case a.turn == 0:
		return a.session
	case a.undo == 0:
		return agent.TurnID(a.session, a.turn)
	}
	return agent.UndoID(a.session, a.turn, a.undo)
}

// parseKey reads the key of an effect.
func parseKey(key string) (agent.Key, error) {
	k, ok := agent.ParseKey(key)
	if !ok {
		return k, usageError("%q is no key of an effect; copy it whole from: holdfast effects", line(key, agent.MaxKey))
	}
	return k, nil
}
