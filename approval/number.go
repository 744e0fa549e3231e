package approval

import (
	"math/big"
	"strings"
)

// NumberValue returns a text that is equal for JSON numbers of equal value: 1, 1.0 and 10e-1. It works on
// the digits and never computes a power of ten, so that 1e999999999 costs no more than its text.
func NumberValue(number string) string {
	number, negative := strings.CutPrefix(number, "-")
	mantissa, exponent := number, "0"
	if i := strings.IndexAny(number, "eE"); i >= 0 {
		mantissa, exponent = number[:i], strings.TrimPrefix(number[i+1:], "+")
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	if trimmed == "" {
		return "0"
	}
	// The exponent itself may have any length that MaxNumber lets through.
	e, _ := new(big.Int).SetString(exponent, 10)
	e.Add(e, big.NewInt(int64(len(digits)-len(trimmed)-len(fraction))))
	sign := ""
	if negative {
		sign = "-"
	}
	return sign + trimmed + "e" + e.String()
}
