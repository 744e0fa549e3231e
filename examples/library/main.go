// Command library is the holdfast command with one more tool, written in Go.
package main

import (
	"context"
	"log"
	"os"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/starter"
	"github.com/holdfast-run/holdfast/tool"
)

type input struct {
	Text string `json:"text" jsonschema:"the text to count in"`
}

func count(_ context.Context, _ tool.Call, in input) (int, error) {
	return len(strings.Fields(in.Text)), nil
}

func main() {
	spec := tool.Spec{Name: "count_words", Description: "Count the words of a text.", Class: agent.ClassRead}
	words, err := tool.New(spec, count)
	if err != nil {
		log.Fatal(err)
	}
	os.Exit(starter.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, words))
}
