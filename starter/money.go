package starter

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// money is millionths as a decimal number. The currency is whatever the prices in the configuration are in.
func money(micros int64) string {
	sign := ""
	if micros < 0 {
		sign, micros = "-", -micros
	}
	s := fmt.Sprintf("%s%d.%06d", sign, micros/1_000_000, micros%1_000_000)
	for strings.HasSuffix(s, "0") && len(s)-strings.Index(s, ".") > 3 {
		s = s[:len(s)-1]
	}
	return s
}

// parseMoney reads a decimal number with at most six places, exactly.
func parseMoney(s string) (int64, error) {
	whole, part, _ := strings.Cut(s, ".")
	digits := whole + part + strings.Repeat("0", max(0, 6-len(part)))
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || whole == "" || len(part) > 6 || strings.HasSuffix(s, ".") {
		return 0, fmt.Errorf("%q is no amount: want a number such as 0.25, with at most six decimal places", s)
	}
	return int64(n), nil
}

// usageText is a turn's usage in a line.
func usageText(u agent.Usage) string {
	s := fmt.Sprintf("%s, %d tokens in", count(int(u.Calls), "model call"), u.Input)
	if u.Cached > 0 {
		s += fmt.Sprintf(" (%d cached)", u.Cached)
	}
	s += fmt.Sprintf(", %d out", u.Output)
	if u.Reasoning > 0 {
		s += fmt.Sprintf(" (%d reasoning)", u.Reasoning)
	}
	if u.Micros > 0 {
		s += ", cost " + money(u.Micros)
	}
	if u.Dropped > 0 {
		s += fmt.Sprintf(", and %s given up that may be charged for", count(int(u.Dropped), "call"))
	}
	return s
}

// budgetText says what was spent of a budget, or granted.
func budgetText(b agent.Budget) string {
	parts := []string{count(b.Steps, "step"), fmt.Sprintf("%d tokens", b.Tokens)}
	if b.Micros > 0 {
		parts = append(parts, "cost "+money(b.Micros))
	}
	parts = append(parts, count(b.Effects, "effect"))
	if b.Time > 0 {
		parts = append(parts, b.Time.Std().Round(time.Millisecond).String()+" of work")
	}
	return strings.Join(parts, ", ")
}
