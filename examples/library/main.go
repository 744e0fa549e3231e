// Command library is the holdfast command with one more tool, written in Go.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/starter"
	"github.com/holdfast-run/holdfast/tool"
)

type countInput struct {
	Text string `json:"text" jsonschema:"the text to count in"`
}

type countOutput struct {
	Words int `json:"words"`
}

func count(_ context.Context, _ tool.Call, in countInput) (countOutput, error) {
	return countOutput{Words: len(strings.Fields(in.Text))}, nil
}

func main() {
	words, err := tool.New(tool.Spec{
		Name: "count_words", Description: "Count the words of a text.", Class: agent.ClassRead,
	}, count)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(starter.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, words))
}
