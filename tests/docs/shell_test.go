package docs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/holdfast-run/holdfast/starter"
)

func holdfast() *cobra.Command {
	cmd := starter.NewRoot(&starter.App{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard})
	cmd.InitDefaultCompletionCmd()
	cmd.InitDefaultHelpCmd()
	return cmd
}

// parse says what is wrong with a command line of holdfast, without running it.
func parse(args []string) error {
	cmd, rest, err := holdfast().Find(args)
	if err != nil {
		return err
	}
	if err := cmd.ParseFlags(rest); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}

// others are programs that a document may show besides ours and make.
func others() []string {
	return []string{"cat", "cd", "cp", "curl", "docker", "echo", "export", "git", "jq", "kill", "mkdir", "ssh-keygen", "temporal"}
}

// wrong says what is wrong with a command as a document shows it.
func wrong(words []string, makefile string) error {
	for len(words) > 0 && strings.Contains(words[0], "=") {
		words = words[1:] // variables of the command's environment
	}
	if len(words) == 0 {
		return nil
	}
	program, args := filepath.Base(words[0]), words[1:]
	if program == "go" && len(args) > 1 && args[0] == "run" {
		if info, err := os.Stat(filepath.Join(root, args[1])); err != nil || !info.IsDir() {
			return fmt.Errorf("there is no program %s", args[1])
		}
		program, args = "holdfast", args[2:]
	}
	switch {
	case program == "holdfast":
		return parse(args)
	case program == "make":
		for _, arg := range args {
			if !strings.Contains(arg, "=") && !strings.Contains(makefile, "\n"+arg+":") {
				return fmt.Errorf("make has no target %q", arg)
			}
		}
		return nil
	case slices.Contains(others(), program):
		return nil
	}
	return fmt.Errorf("nothing holds the command %q", words[0])
}

// commands splits shell text into the commands in it, those in $(...) included. It knows as much of the shell
// as documents need.
func commands(text string) [][]string {
	s := &shell{in: strings.ReplaceAll(text, "\\\n", " ")}
	s.list(false)
	return slices.DeleteFunc(s.out, func(words []string) bool { return len(words) == 0 })
}

type shell struct {
	in  string
	at  int
	out [][]string
}

func (s *shell) list(inner bool) {
	var words []string
	word, open := "", false
	endWord := func() {
		if open {
			words = append(words, word)
		}
		word, open = "", false
	}
	endCommand := func() {
		endWord()
		s.out = append(s.out, words)
		words = nil
	}
	for ; s.at < len(s.in); s.at++ {
		switch c := s.in[s.at]; {
		case c == '\'' || c == '"':
			word, open = word+s.quoted(c), true
		case strings.HasPrefix(s.in[s.at:], "$("):
			s.at += 2
			s.list(true)
			word, open = word+"x", true
		case inner && c == ')':
			endCommand()
			return
		case c == '#' && !open:
			s.at += strings.IndexByte(s.in[s.at:]+"\n", '\n') - 1
		case c == '\n' || c == ';' || c == '|' || c == '&':
			endCommand()
		case c == '>': // what follows is a file
			endWord()
			rest := strings.TrimLeft(s.in[s.at+1:], "> ")
			s.at = len(s.in) - len(rest) + strings.IndexAny(rest+"\n", " \n|&;") - 1
		case c == ' ' || c == '\t':
			endWord()
		default:
			word, open = word+string(c), true
		}
	}
	endCommand()
}

// quoted reads to the closing quote.
func (s *shell) quoted(quote byte) string {
	text := ""
	for s.at++; s.at < len(s.in) && s.in[s.at] != quote; s.at++ {
		if quote == '"' && strings.HasPrefix(s.in[s.at:], "$(") {
			s.at += 2
			s.list(true)
			text += "x"
			continue
		}
		text += string(s.in[s.at])
	}
	return text
}

func TestCommandLinesAreThoseOfTheCommand(t *testing.T) {
	t.Parallel()
	makefile := file(t, "Makefile")
	for _, b := range blocks(t, "sh") {
		for _, words := range commands(b.text) {
			if err := wrong(words, makefile); err != nil {
				t.Errorf("%s: %s: %v", b, strings.Join(words, " "), err)
			}
		}
	}
}

var shown = regexp.MustCompile(`(?m)^# {3}(\S.*)$`)

func TestCommandLinesInCommentsOfConfigurationsAreThoseOfTheCommand(t *testing.T) {
	t.Parallel()
	makefile, n := file(t, "Makefile"), 0
	files, err := filepath.Glob(filepath.Join(root, "examples/*/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(files, filepath.Join(root, "docker-compose.yml")) {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range shown.FindAllStringSubmatch(string(b), -1) {
			for _, words := range commands(m[1]) {
				n++
				if err := wrong(words, makefile); err != nil {
					t.Errorf("%s: %s: %v", f, m[1], err)
				}
			}
		}
	}
	if n < 8 {
		t.Errorf("only %d commands found", n)
	}
}

var (
	span  = regexp.MustCompile("`([^`\n]+)`")
	ours  = regexp.MustCompile(`^(holdfast|make) [a-z]`)
	blank = regexp.MustCompile(`\s+\.\.\.|…`)
)

func TestCommandsInTheTextAreThoseOfTheCommand(t *testing.T) {
	t.Parallel()
	makefile, n := file(t, "Makefile"), 0
	for _, p := range pages(t) {
		for _, m := range span.FindAllStringSubmatch(p.prose(), -1) {
			if !ours.MatchString(m[1]) {
				continue
			}
			n++
			for _, words := range commands(blank.ReplaceAllString(m[1], "")) {
				err := wrong(words, makefile)
				if err != nil && (!strings.Contains(err.Error(), " takes ") || strings.Contains(err.Error(), ", and got ")) { // not its name alone
					t.Errorf("%s: `%s`: %v", p.name, m[1], err)
				}
			}
		}
	}
	if n == 0 {
		t.Error("no commands found")
	}
}

func TestTheCheckOfCommandLinesSeesWhatIsWrong(t *testing.T) {
	t.Parallel()
	got := commands("# a comment\nA=1 holdfast run x \"two words\" | cat > file.txt && S=$(holdfast start 'y z')\nholdfast \\\n  dev # why\n")
	want := [][]string{
		{"A=1", "holdfast", "run", "x", "two words"},
		{"cat"},
		{"holdfast", "start", "y z"},
		{"S=x"},
		{"holdfast", "dev"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	makefile := file(t, "Makefile")
	for line, good := range map[string]bool{
		"holdfast run helper hello --close":      true,
		"TEMPORAL_ADDRESS=x bin/holdfast setup":  true,
		"go run ./examples/library dev":          true,
		"make test TESTFLAGS=-v":                 true,
		"holdfast rum helper hello":              false,
		"holdfast run helper hello --clos":       false,
		"holdfast run":                           false,
		"holdfast config chek":                   false,
		"go run ./examples/nosuch dev":           false,
		"make no-such-target":                    false,
		"something --else":                       false,
		"holdfast cancel x --wait 10":            false,
		"holdfast transcript s --verify --turns": false,
	} {
		for _, words := range commands(line) {
			if err := wrong(words, makefile); (err == nil) != good {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}
