package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// root is the module's folder.
const root = "../.."

// An edit is a row of the table edits.yaml.
type edit struct {
	Name    string   `yaml:"name"`
	Why     string   `yaml:"why"` // it breaks runs, or does not
	Changes []change `yaml:"changes"`

	// Of edits that break runs.

	// Finds are words that one of the findings has: what history holds, what the code wants, or the cause.
	Finds []string `yaml:"finds"`
	// Temporal says that Temporal's own replay sees it too, on some history; else only the strict comparison does.
	Temporal bool `yaml:"temporal"`

	// Command has the edit tried with the whole holdfast command, not only with the heart of it.
	Command bool `yaml:"command"`
}

// A change puts a new text in the place of an old one.
type change struct {
	File string `yaml:"file"` // below the module's folder
	Old  string `yaml:"old"`  // stands in the file exactly once
	New  string `yaml:"new"`
}

// A table is all of edits.yaml.
type table struct {
	Breaking []edit `yaml:"breaking"`
	Harmless []edit `yaml:"harmless"`
}

func load(t *testing.T) table {
	t.Helper()
	b, err := os.ReadFile("edits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all table
	if err := yaml.UnmarshalWithOptions(b, &all, yaml.Strict()); err != nil {
		t.Fatalf("edits.yaml: %v", err)
	}
	return all
}

// apply returns the edited files by their place below the module's folder.
func (e edit) apply() (map[string][]byte, error) {
	out := map[string][]byte{}
	for _, c := range e.Changes {
		text, ok := out[c.File]
		if !ok {
			var err error
			if text, err = os.ReadFile(filepath.Join(root, c.File)); err != nil {
				return nil, err
			}
		}
		if n := bytes.Count(text, []byte(c.Old)); n != 1 || c.Old == "" {
			return nil, fmt.Errorf("its old text stands %d times in %s, want once: the code has moved on. Write the edit anew for the code as it is now, "+
				"or put another edit of its kind in its place; the old text is:\n%s", n, c.File, c.Old)
		}
		out[c.File] = bytes.Replace(text, []byte(c.Old), []byte(c.New), 1)
	}
	return out, nil
}

func TestTheTableHasFiftyEditsOfWhichHalfBreakRuns(t *testing.T) {
	t.Parallel()
	all := load(t)
	if len(all.Breaking) < 25 || len(all.Harmless) < 25 {
		t.Errorf("%d edits break runs and %d do not; want 25 of each at least", len(all.Breaking), len(all.Harmless))
	}
	strict := 0
	for _, e := range all.Breaking {
		if len(e.Finds) == 0 {
			t.Errorf("%q breaks runs: say in finds what the finding has to name", e.Name)
		}
		if !e.Temporal {
			strict++
		}
	}
	if strict == 0 || strict == len(all.Breaking) {
		t.Errorf("%d of %d edits are for the strict comparison only; want some that Temporal sees too, and some that it does not", strict, len(all.Breaking))
	}
	for _, e := range all.Harmless {
		if len(e.Finds) > 0 || e.Temporal {
			t.Errorf("%q breaks nothing, so there is nothing to find", e.Name)
		}
	}
}

func TestEveryEditStillApplies(t *testing.T) {
	t.Parallel()
	all := load(t)
	seen := map[string]bool{}
	for _, e := range append(all.Breaking, all.Harmless...) {
		switch {
		case e.Name == "" || e.Why == "" || len(e.Changes) == 0:
			t.Errorf("edit %q lacks its name, why or changes", e.Name)
		case seen[e.Name]:
			t.Errorf("there are two edits %q", e.Name)
		}
		seen[e.Name] = true
		files, err := e.apply()
		if err != nil {
			t.Errorf("edit %q: %v", e.Name, err)
		}
		for name := range files {
			if !workflowCode(name) {
				t.Errorf("edit %q is of %s, which is no workflow code", e.Name, name)
			}
		}
	}
}

// workflowCode says whether a file takes part in what a run asks for.
func workflowCode(name string) bool {
	folder, _, _ := strings.Cut(filepath.ToSlash(name), "/")
	switch folder {
	case "workflows", "versioning", "effect", "approval", "agent":
		return !strings.HasSuffix(name, "_test.go")
	}
	return false
}
