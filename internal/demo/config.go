package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"text/template"
	"time"
)

const (
	agentName = "support"
	// heartbeat is after which silence a tool's attempt is given up. A production worker would be
	// more patient.
	heartbeat = 3 * time.Second
	// limit is the amount up to which the agent may refund without asking.
	limit = 10
)

//go:embed holdfast.yaml.tmpl
var configText string

// places is what the configuration's template is filled with.
type places struct {
	Agent, Store        string
	BaseURL, Model, Key string
	Payments            string // base URL
	Heartbeat           time.Duration
	Limit               int
	Approver, PublicKey string
}

func writeConfig(path string, p places) error {
	t, err := template.New("holdfast.yaml").Funcs(template.FuncMap{"quote": quote}).Parse(configText)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, p); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}

// quote makes a YAML string of any text: JSON's strings are YAML's.
func quote(s string) (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}
