package deploy

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
	"github.com/holdfast-run/holdfast/worker"
)

// tableEntry is the key of a version's metadata under which its [Table] stands.
const tableEntry = "holdfast"

// A Table is what a build says of itself to those who come before and after it.
type Table struct {
	// Binary is [worker.BuildID] of the program, which differs from the build id when that was given by hand.
	Binary  string             `json:"binary"`
	Numbers map[string]Numbers `json:"numbers"` // by workflow type
}

// Numbers are the change numbers of one workflow type: see package versioning.
type Numbers struct {
	Oldest    int `json:"oldest"`
	Newest    int `json:"newest"`
	Preferred int `json:"preferred"`
}

// maxTable bounds a table in bytes; this build's has about 150.
const maxTable = 4 << 10

// Own returns the table of this program.
func Own() Table {
	t := Table{Binary: worker.BuildID(), Numbers: map[string]Numbers{}}
	for _, kind := range []string{agent.WorkflowSession, agent.WorkflowTurn} {
		r := versioning.Bounds(kind)
		t.Numbers[kind] = Numbers{Oldest: r.Oldest, Newest: r.Newest, Preferred: r.Preferred}
	}
	return t
}

// Publish puts the table of this program into the metadata of its worker deployment version, for "holdfast deploy" to
// read on any machine. The server knows the version a moment after the first poll, so it is tried until ctx ends.
// Publishing again what is there already writes nothing.
func Publish(ctx context.Context, c client.Client, deployment, build string) error {
	own := Own()
	h := c.WorkerDeploymentClient().GetHandle(deployment)
	for {
		there, err := h.DescribeVersion(ctx, client.WorkerDeploymentDescribeVersionOptions{BuildID: build})
		if err == nil {
			if now := readTable(converter.GetDefaultDataConverter(), there.Info.Metadata[tableEntry]); now != nil && now.equal(own) {
				return nil
			}
			_, err = h.UpdateVersionMetadata(ctx, client.WorkerDeploymentUpdateVersionMetadataOptions{
				Version:        sdkworker.WorkerDeploymentVersion{DeploymentName: deployment, BuildID: build},
				MetadataUpdate: client.WorkerDeploymentMetadataUpdate{UpsertEntries: map[string]any{tableEntry: own}},
			})
		}
		if err == nil {
			return nil
		}
		if !isNotFound(err) && !isOutage(err) {
			return fmt.Errorf("build %q of deployment %q cannot say which change numbers it understands: %w", build, deployment, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("build %q of deployment %q: %w", build, deployment, ctx.Err())
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// readTable reads what a build published. Anything else is no table.
func readTable(c converter.DataConverter, p *commonpb.Payload) *Table {
	if p == nil || len(p.GetData()) > maxTable {
		return nil
	}
	var raw json.RawMessage
	var t Table
	if c.FromPayload(p, &raw) != nil || json.Unmarshal(raw, &t) != nil || !t.valid() {
		return nil
	}
	return &t
}

func (t *Table) valid() bool {
	for _, n := range t.Numbers {
		if n.Oldest < 1 || n.Preferred < n.Oldest || n.Newest < n.Preferred {
			return false
		}
	}
	return len(t.Numbers) > 0
}

func (t *Table) equal(u Table) bool {
	if t.Binary != u.Binary || len(t.Numbers) != len(u.Numbers) {
		return false
	}
	for kind, n := range t.Numbers {
		if u.Numbers[kind] != n {
			return false
		}
	}
	return true
}

// Is says whether a build is the program whose own build id is given.
func (b Build) Is(binary string) bool {
	return b.ID == binary || b.Changes != nil && b.Changes.Binary == binary
}

// A Gap is a change number that new runs of one build take and that another build does not understand.
type Gap struct {
	Type   string `json:"type"`
	Number int    `json:"number"`
	Oldest int    `json:"oldest"` // what the other understands
	Newest int    `json:"newest"`
}

func (g Gap) String() string {
	return fmt.Sprintf("number %d of %s, where the other understands %d to %d", g.Number, g.Type, g.Oldest, g.Newest)
}

// gaps returns what new runs of a build take and another does not understand. Where one of them says nothing of
// itself, nothing is known.
func gaps(of, other *Table) []Gap {
	if of == nil || other == nil {
		return nil
	}
	var out []Gap
	for _, kind := range []string{agent.WorkflowSession, agent.WorkflowTurn} {
		n, o := of.Numbers[kind], other.Numbers[kind]
		if n.Preferred != 0 && o.Newest != 0 && (n.Preferred > o.Newest || n.Preferred < o.Oldest) {
			out = append(out, Gap{Type: kind, Number: n.Preferred, Oldest: o.Oldest, Newest: o.Newest})
		}
	}
	return out
}
