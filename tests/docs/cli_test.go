package docs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/cli.md anew")

const cliHead = `# Commands

What ` + "`holdfast COMMAND --help`" + ` says, on one page. It is written by a test:
` + "`go test ./tests/docs -update`" + `.

`

// manual puts the help of all commands on one page.
func manual() string {
	var b strings.Builder
	b.WriteString(cliHead)
	top := holdfast()
	fmt.Fprintf(&b, "Flags of every command:\n\n```text\n%s```\n", top.PersistentFlags().FlagUsages())
	for _, cmd := range top.Commands() {
		chapter(&b, cmd)
	}
	return b.String()
}

func chapter(b *strings.Builder, cmd *cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" {
		return
	}
	if !cmd.Runnable() && !cmd.HasSubCommands() { // a page of help
		fmt.Fprintf(b, "\n## %s\n\n```text\n%s\n```\n", cmd.Short, cmd.Long)
		return
	}
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```text\n%s\n", cmd.CommandPath(), strings.TrimSpace(text), cmd.UseLine())
	if flags := usages(cmd); flags != "" {
		fmt.Fprintf(b, "\n%s", flags)
	}
	b.WriteString("```\n")
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", margin(cmd.Example))
	}
	if cmd.Name() == "completion" {
		return // one page says it for every shell
	}
	for _, sub := range cmd.Commands() {
		chapter(b, sub)
	}
}

// usages are the flags of a command, without what differs from machine to machine.
func usages(cmd *cobra.Command) string {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Name == "help":
			f.Hidden = true
		case f.Name == "from" && f.DefValue != "":
			f.DefValue = ""
			f.Usage += " (default: your user name)"
		}
	})
	return cmd.LocalNonPersistentFlags().FlagUsages()
}

func margin(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

func TestTheManualIsWhatTheHelpSays(t *testing.T) {
	t.Parallel()
	path, want := filepath.Join(root, "docs/cli.md"), manual()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("the help (-) and docs/cli.md (+) differ; run: go test ./tests/docs -update\n%s", d)
	}
}
