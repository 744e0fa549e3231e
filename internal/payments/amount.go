package payments

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// An Amount is money in cents. Its text and JSON form is decimal, such as "19.90"; no float is involved.
type Amount int64

// The bound on the digits keeps every amount inside an int64.
var decimal = regexp.MustCompile(`^(0|[1-9][0-9]{0,12})(\.[0-9]{1,2})?$`)

// ParseAmount reads decimal text such as "19.90", "19.9" or "19".
func ParseAmount(s string) (Amount, error) {
	if !decimal.MatchString(s) {
		return 0, fmt.Errorf("amount %q: want a decimal such as \"19.90\" with at most two places", s)
	}
	whole, cents, _ := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole+(cents + "00")[:2], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("amount %q: %w", s, err)
	}
	return Amount(n), nil
}

// String returns the amount with two places.
func (a Amount) String() string { return fmt.Sprintf("%d.%02d", a/100, a%100) }

// MarshalJSON writes the amount as text.
func (a Amount) MarshalJSON() ([]byte, error) { return json.Marshal(a.String()) }

// UnmarshalJSON reads text, or a number by its digits: 19.9 and "19.90" are the same amount.
func (a *Amount) UnmarshalJSON(b []byte) error {
	s, err := scalar(b)
	if err != nil {
		return err
	}
	*a, err = ParseAmount(s)
	return err
}

// scalar returns the text of a JSON string or the digits of a JSON number.
func scalar(b []byte) (string, error) {
	var n json.Number
	if len(b) > 0 && b[0] != '"' {
		err := json.Unmarshal(b, &n)
		if err != nil || n == "" {
			return "", fmt.Errorf("%s: want text or a number", b)
		}
		return n.String(), nil
	}
	var s string
	err := json.Unmarshal(b, &s)
	return s, err
}
