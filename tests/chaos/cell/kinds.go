package cell

// A sort is what there is of a kind.
type sort struct {
	kind   Kind
	placed bool     // it strikes at a place
	args   []string // each that it may have
}

// sorts is every kind, with every argument that the table has.
func sorts() []sort {
	none := []string{""}
	return []sort{
		{Kill, true, none},
		{Freeze, true, none},
		{Hang, true, []string{"4s"}}, // beyond the heartbeat and a tool's timeout
		{Error, true, []string{"", "ENOSPC", "EROFS", "EIO"}},
		{Crash, true, none},
		{Revoke, true, none},
		{Rebuild, true, none},
		{Damage, true, product([]string{"dispatches", "results", "segments", "intents", "bodies"}, []string{"missing", "flipped", "truncated"})},
		{Slow, true, []string{"200ms"}},
		{Link, true, product([]string{"model", "destination", "server"}, []string{"slow", "half-open", "deaf", "cut"})},
		{Lost, false, []string{"drop", "error", "silence", "lose", "refuse", "entered 429 seconds", "entered 503 date"}},
		{Storm, false, append(
			product([]string{"model"}, product([]string{"429", "500", "503"}, []string{"seconds", "date"})),
			product([]string{"destination"}, product([]string{"429", "503"}, []string{"seconds", "date"}))...,
		)},
		{Word, false, []string{"duplicate", "early", "late", "delayed", "wrong", "crowd"}},
		{Clock, false, []string{"1h", "-1h"}},
		{Renew, false, none},
		{Cold, false, none},
		{Late, false, none},
	}
}

// product returns each pair as two words.
func product(first, second []string) []string {
	var out []string
	for _, a := range first {
		for _, b := range second {
			out = append(out, a+" "+b)
		}
	}
	return out
}

func sortOf(k Kind) (sort, bool) {
	for _, s := range sorts() {
		if s.kind == k {
			return s, true
		}
	}
	return sort{}, false
}
