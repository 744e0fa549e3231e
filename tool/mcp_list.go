package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/holdfast-run/holdfast/agent"
)

// What a server may list. A listing that is larger is refused as a whole, a tool that is larger alone.
const (
	maxTools       = 1000
	maxPages       = 1000
	maxSchema      = 64 << 10
	maxDescription = 16 << 10
)

// A remoteTool is a tool as a server listed it.
type remoteTool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  annotations     `json:"annotations"`

	problem string
}

// annotations are a server's hints about a tool. Absent ones have the protocol's defaults: not read-only,
// destructive, not idempotent, open world.
type annotations struct {
	ReadOnly    *bool `json:"readOnlyHint,omitempty"`
	Destructive *bool `json:"destructiveHint,omitempty"`
	Idempotent  *bool `json:"idempotentHint,omitempty"`
	OpenWorld   *bool `json:"openWorldHint,omitempty"`
}

// A toolList is what a server lists, in the order of the names.
type toolList []remoteTool

// listTools asks for all pages. It returns nil without an error when the SDK still has a listing whose
// time has not run out.
func listTools(ctx context.Context, cs *mcp.ClientSession) (toolList, error) {
	var list toolList
	cursor, seen := "", map[string]bool{}
	for range maxPages {
		page, err := listPage(ctx, cs, cursor)
		if err != nil || page == nil {
			return nil, err
		}
		if len(list)+len(page.Tools) > maxTools {
			return nil, fmt.Errorf("lists more than %d tools; have it offer fewer", maxTools)
		}
		for _, raw := range page.Tools {
			list = append(list, readTool(raw))
		}
		if page.NextCursor == "" {
			return sorted(list), nil
		}
		if cursor = page.NextCursor; seen[cursor] {
			return nil, errors.New("lists the same page of tools again and again")
		}
		seen[cursor] = true
	}
	return nil, fmt.Errorf("lists its tools on more than %d pages", maxPages)
}

type toolPage struct {
	Tools      []json.RawMessage `json:"tools"`
	NextCursor string            `json:"nextCursor"`
}

func listPage(ctx context.Context, cs *mcp.ClientSession, cursor string) (*toolPage, error) {
	ctx, f, done := newFlight(ctx)
	defer done()
	_, err := cs.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
	a := f.answer.Load()
	switch {
	case a == nil && err == nil:
		return nil, nil
	case a == nil:
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("does not list its tools: %w", err)
	case a.err != nil:
		return nil, fmt.Errorf("does not list its tools: %w", a.err)
	}
	var page toolPage
	if err := json.Unmarshal(a.result, &page); err != nil {
		return nil, fmt.Errorf("does not list its tools in the protocol's form: %w", err)
	}
	return &page, nil
}

// readTool never fails: a tool that cannot be read is one with a problem.
func readTool(raw json.RawMessage) remoteTool {
	var t remoteTool
	if err := json.Unmarshal(raw, &t); err != nil || t.Name == "" {
		var name struct {
			Name any `json:"name"`
		}
		_ = json.Unmarshal(raw, &name)
		t = remoteTool{Name: fmt.Sprint(name.Name), problem: "the server's description of it is not in the protocol's form"}
		if err != nil {
			t.problem += ": " + err.Error()
		}
		return t
	}
	t.problem = t.flaw()
	return t
}

func (t *remoteTool) flaw() string {
	if len(t.InputSchema)+len(t.OutputSchema) > maxSchema {
		return fmt.Sprintf("its schemas are larger than %d KiB", maxSchema>>10)
	}
	if len(t.Description) > maxDescription {
		return fmt.Sprintf("its description is longer than %d KiB", maxDescription>>10)
	}
	if len(t.InputSchema) == 0 || string(t.InputSchema) == "null" {
		return `it has no input schema; the protocol wants at least {"type":"object"}`
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(t.InputSchema, &object); err != nil {
		return "its input schema is not a JSON object"
	}
	if kind := string(object["type"]); kind != `"object"` {
		return fmt.Sprintf(`its input schema has the type %.40s; the protocol wants "object"`, cmp.Or(kind, "none"))
	}
	var err error
	if t.InputSchema, err = sortedJSON(t.InputSchema); err == nil && len(t.OutputSchema) > 0 {
		t.OutputSchema, err = sortedJSON(t.OutputSchema)
	}
	if err != nil {
		return "its schema cannot be read: " + err.Error()
	}
	return ""
}

// sortedJSON gives equal values equal bytes: keys in order, numbers as they are.
func sortedJSON(raw []byte) (json.RawMessage, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return plainJSON(v)
}

// sorted orders a list and finds names that are there twice.
func sorted(list toolList) toolList {
	slices.SortStableFunc(list, func(a, b remoteTool) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(list); i++ {
		if list[i].Name == list[i-1].Name {
			list[i].problem = "the server lists the name twice"
			list[i-1].problem = list[i].problem
		}
	}
	return list
}

// digest identifies what the server says about a tool; empty if it does not list it, or not usably.
func (l toolList) digest(name string) agent.Digest {
	i, ok := slices.BinarySearchFunc(l, name, func(t remoteTool, name string) int { return strings.Compare(t.Name, name) })
	if !ok || l[i].problem != "" {
		return ""
	}
	t := l[i]
	b, err := json.Marshal([]any{t.Name, t.Description, string(t.InputSchema), string(t.OutputSchema), t.Annotations})
	if err != nil {
		return ""
	}
	return agent.DigestOf(b)
}
