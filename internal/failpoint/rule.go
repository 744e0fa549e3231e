//go:build failpoint

package failpoint

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"syscall"
	"time"
)

type action int

const (
	actKill action = iota
	actFreeze
	actHang
	actError
	actFile
)

// A rule is one element of HOLDFAST_FAILPOINT.
type rule struct {
	name        string
	first, last int // the passings at which it acts
	act         action
	span        time.Duration // of a freeze or a hang
	errno       syscall.Errno // of an error; 0 is none of the operating system's
	path        string
}

// acts says whether the rule is about the n-th passing of a place.
func (r rule) acts(name string, n int) bool {
	return r.name == name && r.first <= n && n <= r.last
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
		return rule{}, errors.New("want name[:n[-m]]=action")
	}
	r := rule{first: 1, last: math.MaxInt}
	name, passings, counted := strings.Cut(place, ":")
	if r.name = name; !known(name) {
		return rule{}, fmt.Errorf("there is no place %q", name)
	}
	if counted {
		var err error
		if r.first, r.last, err = parsePassings(passings); err != nil {
			return rule{}, err
		}
	}
	return r, r.parseAction(what)
}

// parsePassings reads "3", or "3-5".
func parsePassings(text string) (first, last int, err error) {
	from, to, ranged := strings.Cut(text, "-")
	if !ranged {
		to = from
	}
	first, err = strconv.Atoi(from)
	if err == nil {
		last, err = strconv.Atoi(to)
	}
	if err != nil || first < 1 || last < first {
		return 0, 0, fmt.Errorf("%q are no passings: want :3 or :3-5, counted from 1", text)
	}
	return first, last, nil
}

func (r *rule) parseAction(what string) (err error) {
	kind, arg, has := strings.Cut(what, ":")
	switch {
	case kind == "kill" && !has:
		r.act = actKill
	case kind == "freeze":
		r.act = actFreeze
		r.span, err = parseSpan(kind, arg)
	case kind == "hang":
		r.act = actHang
		r.span, err = parseSpan(kind, arg)
	case kind == "error":
		r.act = actError
		if r.errno = errnos[arg]; has && r.errno == 0 {
			err = fmt.Errorf("%q is no error of the operating system that is known here: see errnos", arg)
		}
	case kind == "file":
		r.act = actFile
		if r.path = arg; arg == "" {
			err = errors.New("want file:/path")
		}
	default:
		err = fmt.Errorf("%q is no action: want kill, freeze:<duration>, hang:<duration>, error[:<errno>] or file:<path>", what)
	}
	return err
}

func parseSpan(kind, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%q is no duration: want %s:5s", text, kind)
	}
	return d, nil
}

// errnos are the errors of the operating system that a rule may name.
var errnos = map[string]syscall.Errno{
	"EACCES": syscall.EACCES, "EDQUOT": syscall.EDQUOT, "EIO": syscall.EIO, "ENOENT": syscall.ENOENT,
	"ENOSPC": syscall.ENOSPC, "EPERM": syscall.EPERM, "EROFS": syscall.EROFS, "ESTALE": syscall.ESTALE,
	"ETIMEDOUT": syscall.ETIMEDOUT,
}

func known(name string) bool {
	for _, p := range Points() {
		if p.Name == name {
			return true
		}
	}
	return false
}
