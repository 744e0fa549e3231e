package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// A saved report has the figures beside the rows that they were counted from, for programs that do not want to count.
type saved struct {
	Report
	Summary  summary    `json:"summary"`
	Recovery []Recovery `json:"recovery"`
}

// JSON writes a report for programs. Durations are in nanoseconds.
func JSON(w io.Writer, r Report) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(saved{r, summarize(r.Rows), Recoveries(r.Rows, r.Bound)})
}

// ParseJSON reads what JSON wrote. It refuses fields that it does not know, because what it would drop could be a
// violation.
func ParseJSON(in io.Reader) (Report, error) {
	var s saved
	dec := json.NewDecoder(in)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Report{}, fmt.Errorf("read a saved report: %w", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Report{}, errors.New("read a saved report: something follows it")
	}
	return s.Report, nil
}
