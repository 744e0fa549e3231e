package openai

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// A function is a name and arguments, or pieces of both.
type function struct {
	Name      literal `json:"name"`
	Arguments literal `json:"arguments"`
}

func (f *function) add(g function) {
	f.Name = join(f.Name, g.Name)
	f.Arguments = append(f.Arguments, g.Arguments...)
}

// calls returns the function as the one call of an answer, if there is one.
func (f *function) calls() []Call {
	if len(f.Name) == 0 && len(f.Arguments) == 0 {
		return nil
	}
	one := callList{all: []*call{{function: *f}}}
	return one.calls()
}

// A piece is an element of tool_calls: a whole call, or in a stream a part of one.
type piece struct {
	Index    *int     `json:"index"`
	ID       literal  `json:"id"`
	Function function `json:"function"`
}

// A call is a tool call as far as it has arrived.
type call struct {
	function
	id    literal
	chunk int // the latest that had something of it
}

// A callList puts pieces together. An index says where a piece belongs, but some servers leave it out and
// some give every call the same, so it is believed only if the rest does not contradict it.
type callList struct {
	all     []*call
	byIndex map[int]*call
	chunk   int
}

func (l *callList) nextChunk() { l.chunk++ }

// put adds a piece to its call, which it returns.
func (l *callList) put(p piece) *call {
	c := l.find(p)
	if c != nil && c.chunk != l.chunk && c.repeats(p) {
		return c
	}
	if c == nil || c.another(p, l.chunk) {
		c = &call{}
		l.all = append(l.all, c)
	}
	if p.Index != nil {
		if l.byIndex == nil {
			l.byIndex = map[int]*call{}
		}
		l.byIndex[*p.Index] = c
	}
	c.chunk = l.chunk
	c.id = join(c.id, p.ID)
	c.add(p.Function)
	return c
}

// find returns the call that p most likely belongs to: that of its index, of its id, or the last.
func (l *callList) find(p piece) *call {
	if p.Index != nil {
		return l.byIndex[*p.Index]
	}
	for i := len(l.all) - 1; i >= 0 && len(p.ID) > 0; i-- {
		if bytes.Equal(l.all[i].id, p.ID) {
			return l.all[i]
		}
	}
	if len(l.all) == 0 {
		return nil
	}
	return l.all[len(l.all)-1]
}

// repeats says whether p is the whole call once more: some gateways end a stream with it.
func (c *call) repeats(p piece) bool {
	return len(p.ID) > 0 && bytes.Equal(c.id, p.ID) && bytes.Equal(c.Arguments, p.Function.Arguments) && c.complete()
}

// another says whether p begins a call of its own although it was taken for a part of c.
func (c *call) another(p piece, chunk int) bool {
	named, identified := len(p.Function.Name) > 0, len(p.ID) > 0
	switch {
	case c.chunk == chunk && (named || identified || p.Index == nil):
		return true // two elements of one list are two calls
	case identified && len(c.id) > 0 && !bytes.Equal(c.id, p.ID):
		return named || p.Index == nil
	case !named || len(c.Arguments) == 0:
		return false
	case p.Index == nil && !identified && !bytes.Equal(c.Name, p.Function.Name):
		return true
	}
	return bytes.HasPrefix(bytes.TrimSpace(p.Function.Arguments), []byte("{")) && c.complete()
}

// complete says whether the arguments are a whole JSON object, so that nothing can belong behind them.
func (c *call) complete() bool {
	args, _ := c.Arguments.text()
	return strings.HasPrefix(strings.TrimSpace(args), "{") && json.Valid([]byte(args))
}

// join appends a piece of a name or an id to what is there. Most servers send it once; some repeat it with
// every piece, some send it growing.
func join(have, more literal) literal {
	switch {
	case bytes.Equal(have, more):
		return have
	case len(have) > 0 && bytes.HasPrefix(more, have):
		return more
	}
	return append(have, more...)
}

// calls returns the calls in the order in which they began, without those that hold nothing at all.
func (l *callList) calls() []Call {
	var out []Call
	for _, c := range l.all {
		if len(c.id) == 0 && len(c.Name) == 0 && len(c.Arguments) == 0 {
			continue
		}
		out = append(out, c.whole())
	}
	nameCalls(out)
	return out
}

func (c *call) whole() Call {
	var out Call
	var inArgs, inName, inID string
	out.Args, inArgs = c.Arguments.text()
	out.Name, inName = c.Name.text()
	if out.ID, inID = c.id.text(); inID != "" {
		out.ID = ""
	}
	switch {
	case inArgs != "":
		out.Damaged = "the arguments cannot be trusted: " + inArgs
	case inName != "":
		out.Damaged = "the name cannot be trusted: " + strings.Replace(inName, "they", "it", 1)
	}
	return out
}

// nameCalls makes up missing and repeated ids from the calls' positions.
func nameCalls(calls []Call) {
	given := map[string]bool{}
	for _, c := range calls {
		given[c.ID] = true
	}
	used := map[string]bool{"": true}
	for i := range calls {
		c := &calls[i]
		for n := i + 1; used[c.ID]; n++ {
			if id := "call_" + strconv.Itoa(n); !given[id] {
				c.ID, given[id] = id, true
			}
		}
		used[c.ID] = true
	}
}
