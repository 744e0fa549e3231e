package cell

import (
	"slices"

	fp "github.com/holdfast-run/holdfast/internal/failpoint"
)

// storeCells are of a store that fails, is full, is read-only or slow, and of workers that end around a write. What a turn
// writes first: 1 the definition, 2 a segment, 3 an answer, 4 and 5 the same, then of a payment 6 the claim, 7 the dispatch
// and 8 the result; 12 is the dispatch of the second payment and 16 the closing record. It reads once in each step.
func storeCells() []Cell {
	after := func(all []schedule) []schedule { // of what starting passes
		for _, s := range all {
			s[0].Nth += started(s[0].At)
			if s[0].Last > 0 {
				s[0].Last += started(s[0].At)
			}
		}
		return all
	}
	some := func(errno string, from, to int, place string) []schedule {
		return []schedule{{{Kind: Error, Arg: errno, At: place, Nth: from, Last: to}}}
	}
	around := []string{fp.StoreBeforeWrite, fp.StoreAfterWrite}
	return slices.Concat(
		cells(Pay, strict, after(slices.Concat(
			at(Kill, 3, around...), at(Kill, 7, around...), at(Kill, 16, around...),
			at(Kill, 2, fp.StoreBeforeRead),
			at(Freeze, 7, around...),
			at(Crash, 7, fp.StoreAfterWrite),
			arg("ENOSPC", at(Error, 7, fp.StoreBeforeWrite)),
			arg("EIO", at(Error, 8, fp.StoreBeforeWrite)),
			// Until there is room again: the attempt comes back, or another does.
			some("ENOSPC", 6, 11, fp.StoreBeforeWrite),
			some("EROFS", 1, 5, fp.StoreBeforeWrite),
			// It is written, and the writer is told that it is not.
			some("EIO", 6, 8, fp.StoreAfterWrite),
			arg("EIO", at(Error, 2, fp.StoreBeforeRead)),
			some("EIO", 3, 6, fp.StoreBeforeRead),
			arg("4s", at(Hang, 7, fp.StoreAfterWrite)),
		))...),
		cells(Pay, strict, arg("200ms", at(Slow, 0, fp.StoreBeforeWrite, fp.StoreBeforeRead))...),
	)
}

// damageCells damage the newest object of a kind where it is the next thing to be needed.
func damageCells() []Cell {
	damaged := func(kind, how string, n int, place string) []schedule { return arg(kind+" "+how, at(Damage, n, place)) }
	dispatch := func(how string) []schedule { return damaged("dispatches", how, 1, fp.ToolAfterCommit) }
	result := func(how string) []schedule { return damaged("results", how, 1, fp.ToolAfterAdoption) }
	answer := func(how string) []schedule { return damaged("results", how, 2, fp.ModelAfterAdoption) }
	claim := func(how string) []schedule { return damaged("intents", how, 1, fp.ToolBeforeDispatch) }
	// The first one has what the user said, the last one what the user was told. One between them would hide from the model
	// what it has asked for, and what it asks for again is another effect.
	segment := func(how string, n int) []schedule { return damaged("segments", how, n, fp.ModelAfterAdoption) }
	// Only a build that defines the agent otherwise needs the stored definition. The turn fails without it, which is the
	// second one here: what the first had done stands.
	definition := func(how string) []schedule {
		return and(damaged("bodies", how, 5, fp.ModelBeforeRequest), Fault{Kind: Rebuild, At: fp.ModelBeforeRequest, Nth: 1})
	}
	return slices.Concat(
		// Somebody may have sent. Who can be asked, is; of an idempotent tool nobody knows when its window began.
		expecting(Same, cells(Pay, []Destination{HTTPAsked, HTTPBlind}, dispatch("flipped")...)),
		expecting(Same, cells(Pay, strict, dispatch("truncated")...)),
		cells(Pay, []Destination{HTTPKeyed}, dispatch("flipped")...),
		expecting(Same, cells(Pay, []Destination{HTTPKeyed}, dispatch("missing")...)),
		// One that is not there is found out anew; of one that cannot be read nobody can say what it said.
		expecting(Same, cells(Pay, overHTTP, result("missing")...)),
		cells(Pay, overHTTP, result("flipped")...),
		// An answer that cannot be read costs another one, and is the same.
		expecting(Same, cells(Pay, strict, slices.Concat(answer("missing"), answer("flipped"))...)),
		// A claim that is not there is made again; one that cannot be read is somebody's.
		expecting(Same, cells(Pay, strict, claim("missing")...)),
		cells(Pay, strict, claim("flipped")...),
		cells(Pay, strict, slices.Concat(segment("flipped", 1), segment("missing", 4), segment("flipped", 4), segment("truncated", 4))...),
		cells(Pay, strict, slices.Concat(definition("missing"), definition("flipped"))...),
	)
}

// lostCells are of a destination whose answer is lost, or that says nothing that helps.
func lostCells() []Cell {
	return slices.Concat(
		cells(Pay, every, beside(Lost, 1, "drop", "silence", "lose")...),
		cells(Pay, overHTTP, beside(Lost, 1, "error", "refuse")...),
		cells(Pay, []Destination{MCPAsked}, beside(Lost, 1, "refuse")...),
		cells(Pay, []Destination{HTTPAsked}, beside(Lost, 1, "entered 429 seconds", "entered 503 date")...),
		// The next attempt's answer is lost too; where there is no next one, the next payment's.
		cells(Pay, []Destination{HTTPKeyed, HTTPBlind}, beside(Lost, 2, "drop")...),
	)
}

// stormCells are of somebody who has too much to do, and says when to come again.
func stormCells() []Cell {
	return slices.Concat(
		cells(Pay, strict, beside(Storm, 3, product([]string{"model 429", "model 500", "model 503"}, []string{"seconds", "date"})...)...),
		cells(Pay, overHTTP, beside(Storm, 2, "destination 429 seconds")...),
		cells(Pay, []Destination{HTTPKeyed}, beside(Storm, 2, "destination 429 date", "destination 503 seconds", "destination 503 date")...),
	)
}

// linkCells are of connections that are bad: slow ones all the time, others from the moment on at which most hangs on
// them, for a while. An MCP server has none.
func linkCells() []Cell {
	bad := func(whom string, how ...string) (out []schedule) {
		for _, h := range how {
			f := Fault{Kind: Link, Arg: whom + " " + h}
			f.At, f.Nth = turnsBad(f.Arg)
			out = append(out, schedule{f})
		}
		return out
	}
	return slices.Concat(
		cells(Pay, strict, bad("model", "slow", "half-open", "deaf", "cut")...),
		cells(Pay, strict, bad("server", "slow", "half-open", "deaf", "cut")...),
		cells(Pay, strict, bad("destination", "slow")...),
		cells(Pay, overHTTP, bad("destination", "half-open", "deaf")...),
		// Nothing leaves: what may be sent again is, and of the rest it is known that it was not.
		cells(Pay, []Destination{HTTPKeyed, HTTPBlind}, bad("destination", "cut")...),
	)
}

// clockCells are of workers whose wall clock is an hour ahead or behind. What has a time of its own is tried with it: a
// dispatch record, an approval, and a date that somebody names.
func clockCells() []Cell {
	ahead, behind := Fault{Kind: Clock, Arg: "1h"}, Fault{Kind: Clock, Arg: "-1h"}
	sent := onPayment(Kill, 1, fp.ToolAfterDispatch)
	return slices.Concat(
		cells(Pay, overHTTP, slices.Concat(and(sent, ahead), and(sent, behind))...),
		// Neither does an approval expire an hour early, nor does one count an hour late.
		cells(Pay, strict, schedule{{Kind: Word, Arg: "delayed"}, ahead}, schedule{{Kind: Word, Arg: "late"}, behind}),
		cells(Pay, strict, and(beside(Storm, 2, "model 429 date"), behind)...),
	)
}
