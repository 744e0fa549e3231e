package openai

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is the longest wait that a server is believed to mean.
const MaxRetryAfter = time.Hour

// retryAfter returns how long the server asks to wait: retry-after-ms in milliseconds, else Retry-After in
// seconds or as an HTTP date (RFC 9110, section 10.2.3). 0 when it does not say or says nonsense.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, ok := number(h.Get("Retry-After-Ms")); ok {
		return bounded(ms / 1000)
	}
	value := h.Get("Retry-After")
	if s, ok := number(value); ok {
		return bounded(s)
	}
	date, err := http.ParseTime(strings.TrimSpace(value))
	if err != nil {
		return 0
	}
	if sent, err := http.ParseTime(h.Get("Date")); err == nil {
		now = sent // both by the server's clock, whatever ours says
	}
	return bounded(date.Sub(now).Seconds())
}

func number(s string) (float64, bool) {
	f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	return f, (err == nil || math.IsInf(f, 0)) && !math.IsNaN(f)
}

func bounded(seconds float64) time.Duration {
	limit := MaxRetryAfter.Seconds()
	return time.Duration(min(max(seconds, 0), limit) * float64(time.Second))
}
