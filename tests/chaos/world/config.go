package world

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

//go:embed holdfast.yaml.tmpl
var configText string

// OtherWords are in the instructions of every build but the first.
const OtherWords = "You say why."

const (
	firstInstructions = "You refund orders."
	// agentName is the agent of every world.
	agentName = "support"
)

// facts are what the configuration's template asks for.
type facts struct {
	Store, Queue       string
	Heartbeat, Sticky  time.Duration
	Model, Destination string // addresses
	Bank, Books        string // empty for a destination over HTTP
	Class              agent.Class
	Askable            bool
	Undo, Renew        bool
	Instructions       string
	Tools              string
	Asks               string        // the amount that a person decides on
	Expires            time.Duration // of the request; 0 is the product's default
	Approver, Key      string
}

// A destinationKind is what a destination can do, and how its tool is declared.
type destinationKind struct {
	mcp         bool
	class       agent.Class
	tool        string // as the model calls it
	tools       string // that the agent has, as a YAML list
	ignoresKeys bool
	unaskable   bool
}

func kindOf(d cell.Destination) (k destinationKind, err error) {
	how, name, _ := strings.Cut(string(d), "-")
	switch name {
	case "keyed":
		k.class = agent.ClassIdempotent
	case "asked":
		k.class, k.ignoresKeys = agent.ClassReconcilable, true
	case "blind":
		k.class, k.ignoresKeys, k.unaskable = agent.ClassOnce, true, true
	default:
		return k, fmt.Errorf("there is no destination %q", d)
	}
	switch how {
	case "http":
		k.tool, k.tools = "pay", "[lookup_order, pay, take_back]"
	case "mcp":
		k.mcp, k.tool, k.tools = true, "bank__"+name, "[lookup_order, bank."+name+"]"
	default:
		return k, fmt.Errorf("there is no destination %q", d)
	}
	return k, nil
}

// configure writes the first build's configuration.
func (w *World) configure() error {
	f := facts{
		Store: w.Store(), Queue: w.Queue, Heartbeat: cell.Heartbeat, Sticky: cell.Sticky,
		Model: w.ModelLink.Addr(), Destination: w.DestinationLink.Addr(),
		Class: w.kind.class, Askable: w.kind.class == agent.ClassReconcilable,
		Undo: w.cfg.Scenario == cell.Undo && !w.kind.mcp, Renew: w.cfg.Renew,
		Instructions: firstInstructions, Tools: w.kind.tools,
		Asks: "29.90", Expires: w.cfg.Expires, Approver: w.approver.name, Key: w.approver.line,
	}
	if w.kind.mcp {
		f.Bank, f.Books = w.lab.bank(), w.BankBooks
	}
	if w.cfg.Scenario == cell.Undo {
		f.Asks = "99.00"
	}
	t, err := template.New("holdfast.yaml").Parse(configText)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := t.Execute(&b, f); err != nil {
		return err
	}
	w.builds = []build{{id: "first", file: filepath.Join(w.Dir, "holdfast.yaml")}}
	w.serial = 1
	return os.WriteFile(w.builds[0].file, b.Bytes(), 0o600)
}

// A build is a program with its configuration file. All builds are of the same code: what differs is what they say
// they are, and their agent's instructions.
type build struct{ id, file string }

// Reconfigure changes the configuration of every build, each under a serial that is higher than any before, and waits
// until it is in force in the workers that can take it: one that does not poll yet and one that stands still find it later.
func (w *World) Reconfigure(ctx context.Context, change func(yaml string) string) error {
	w.mu.Lock()
	workers := slices.Clone(w.workers)
	var err error
	for i := 0; i < len(w.builds) && err == nil; i++ {
		err = w.rewrite(w.builds[i].file, w.builds[i].file, change)
	}
	w.mu.Unlock()
	for _, p := range workers {
		if err == nil {
			err = p.takes(ctx)
		}
	}
	return err
}

// Deny has the policy deny the payments, and what takes them back.
func (w *World) Deny(ctx context.Context) error {
	return w.Reconfigure(ctx, func(yaml string) string {
		return strings.Replace(yaml, "  rules:\n", "  rules:\n    - {name: revoked, when: tool != \"lookup_order\", then: deny}\n", 1)
	})
}

// takes waits until a worker that can take it has its configuration file as it is now in force.
func (p *Worker) takes(ctx context.Context) error {
	if p.file == "" {
		return nil
	}
	serial, err := serialOf(p.file)
	if err != nil {
		return err
	}
	return p.until(ctx, fmt.Sprintf("serial %d is in force", serial), func() (bool, error) {
		have, polls := p.inForce()
		return !polls || have >= serial, nil
	})
}

var inForceLine = regexp.MustCompile(`(?m)^.* msg="(?:worker is ready|configuration in force)" .*\bserial=(\d+).*$`)

// inForce returns the serial of the configuration that a worker goes by, and whether it takes work at all.
func (p *Worker) inForce() (serial int, polls bool) {
	b, err := os.ReadFile(p.log)
	if err != nil || p.Ended() || standsStill(p.PID()) {
		return 0, false
	}
	for _, m := range inForceLine.FindAllSubmatch(b, -1) {
		if n, err := strconv.Atoi(string(m[1])); err == nil {
			serial, polls = n, true
		}
	}
	return serial, polls
}

// rebuild makes another build. It is called with the lock held.
func (w *World) rebuild() error {
	n, last := len(w.builds)+1, w.builds[len(w.builds)-1]
	next := build{id: fmt.Sprintf("other-%d", n), file: filepath.Join(w.Dir, fmt.Sprintf("holdfast-%d.yaml", n))}
	err := w.rewrite(last.file, next.file, func(yaml string) string {
		return strings.Replace(yaml, firstInstructions, firstInstructions+" "+OtherWords, 1)
	})
	if err == nil {
		w.builds = append(w.builds, next)
	}
	return err
}

var serialLine = regexp.MustCompile(`(?m)^serial: (\d+)$`)

// rewrite writes a changed configuration under the next serial. A worker sees the old file or the new one, never half
// of it.
func (w *World) rewrite(from, to string, change func(string) string) error {
	old, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	next := change(string(old))
	if next == string(old) {
		return errors.New("the configuration is the same after the change: what it replaces is not there")
	}
	next = serialLine.ReplaceAllString(next, fmt.Sprintf("serial: %d", w.serial+1))
	if err := os.WriteFile(to+".next", []byte(next), 0o600); err != nil {
		return err
	}
	w.serial++
	return os.Rename(to+".next", to)
}

// serialOf reads the serial of a configuration file.
func serialOf(file string) (int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	m := serialLine.FindSubmatch(b)
	if m == nil {
		return 0, fmt.Errorf("%s has no line with a serial", file)
	}
	return strconv.Atoi(string(m[1]))
}
