package tool

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Bounds of what the model is told about one call's arguments.
const (
	maxProblems = 5
	maxProblem  = 240 // bytes of one of them
)

// explain turns a validation's tree of errors into a line for the model: where, and what is expected.
func (s *schema) explain(err *jsonschema.ValidationError) error {
	var problems []string
	s.collect(err, &problems)
	slices.Sort(problems) // the tree's order is that of a map
	problems = slices.Compact(problems)
	more := ""
	if n := len(problems) - maxProblems; n > 0 {
		problems, more = problems[:maxProblems], fmt.Sprintf("; and %d more", n)
	}
	return errors.New("the arguments do not match the tool's parameters: " + strings.Join(problems, "; ") + more)
}

func (s *schema) collect(err *jsonschema.ValidationError, out *[]string) {
	if len(err.Causes) > 0 {
		for _, c := range err.Causes {
			s.collect(c, out)
		}
		return
	}
	at := ""
	for _, step := range err.InstanceLocation {
		at += "/" + step
	}
	problem := s.problem(err.ErrorKind, at == "")
	if at != "" {
		problem = "at " + clip(strconv.QuoteToASCII(at), 80) + ": " + problem
	}
	*out = append(*out, clip(problem, maxProblem))
}

// problem says what is expected. The library's own texts round numbers to float64 and repeat the value.
func (s *schema) problem(k jsonschema.ErrorKind, top bool) string {
	switch k := k.(type) {
	case *kind.Required:
		return names(k.Missing) + " missing"
	case *kind.AdditionalProperties:
		if top {
			return names(k.Properties) + " not among its parameters, which are " + list(s.properties)
		}
		return names(k.Properties) + " not allowed here"
	case *kind.Type:
		return "must be " + strings.Join(k.Want, " or ") + ", not " + k.Got
	case *kind.Minimum:
		return "must be at least " + decimal(k.Want)
	case *kind.Maximum:
		return "must be at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "must be more than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "must be less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "must be a multiple of " + decimal(k.Want)
	case *kind.Pattern:
		return "must match the pattern " + strconv.QuoteToASCII(k.Want)
	case *kind.FalseSchema:
		return "must not be there"
	case *kind.UniqueItems:
		return fmt.Sprintf("items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	default:
		return k.LocalizedString(message.NewPrinter(language.English))
	}
}

func names(all []string) string {
	if len(all) == 1 {
		return list(all) + " is"
	}
	return list(all) + " are"
}

func list(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	all = slices.Sorted(slices.Values(all))
	var out []string
	for _, name := range all[:min(len(all), 10)] {
		out = append(out, clip(strconv.QuoteToASCII(name), 40))
	}
	if n := len(all) - len(out); n > 0 {
		out = append(out, fmt.Sprintf("%d more", n))
	}
	return strings.Join(out, ", ")
}

// decimal writes a bound exactly: it was a decimal number in the schema.
func decimal(r *big.Rat) string {
	n, _ := r.FloatPrec()
	return r.FloatString(n)
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-3], "") + "..."
}
