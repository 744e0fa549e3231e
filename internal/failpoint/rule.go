//go:build failpoint

package failpoint

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

type action int

const (
	actKill action = iota
	actHang
	actError
	actFile
)

// A rule is one element of HOLDFAST_FAILPOINT.
type rule struct {
	name string
	nth  int // 0 is every passing
	act  action
	hang time.Duration
	path string
}

// parse reads the value of HOLDFAST_FAILPOINT. A name that is not in the table is refused, because a
// misspelt failpoint is a test that tests nothing.
func parse(text string) ([]rule, error) {
	var rules []rule
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		r, err := parseRule(part)
		if err != nil {
			return nil, fmt.Errorf("failpoint %q: %w", part, err)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func parseRule(part string) (rule, error) {
	place, what, ok := strings.Cut(part, "=")
	if !ok {
		return rule{}, fmt.Errorf("want name[:n]=action")
	}
	var r rule
	name, nth, counted := strings.Cut(place, ":")
	if r.name = name; !known(name) {
		return rule{}, fmt.Errorf("there is no place %q", name)
	}
	if counted {
		n, err := strconv.Atoi(nth)
		if err != nil || n < 1 {
			return rule{}, fmt.Errorf("%q is no passing: count from 1", nth)
		}
		r.nth = n
	}
	kind, arg, _ := strings.Cut(what, ":")
	switch kind {
	case "kill":
		r.act = actKill
	case "error":
		r.act = actError
	case "hang":
		d, err := time.ParseDuration(arg)
		if err != nil || d <= 0 {
			return rule{}, fmt.Errorf("%q is no duration: want hang:5s", arg)
		}
		r.act, r.hang = actHang, d
	case "file":
		if arg == "" {
			return rule{}, fmt.Errorf("want file:/path")
		}
		r.act, r.path = actFile, arg
	default:
		return rule{}, fmt.Errorf("%q is no action: want kill, hang:<duration>, error or file:<path>", what)
	}
	return r, nil
}

func known(name string) bool {
	for _, p := range Points() {
		if p.Name == name {
			return true
		}
	}
	return false
}
