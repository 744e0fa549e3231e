package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/versioning"
)

// TableEntry is the key of a worker deployment version's metadata under which its [Table] stands.
const TableEntry = "holdfast"

// A Table is what a build says of itself to those who come before and after it.
type Table struct {
	// Binary is [BuildID] of the program, which differs from the build id when that was given by hand.
	Binary  string                      `json:"binary"`
	Numbers map[string]versioning.Range `json:"numbers"` // by workflow type
}

// maxTable bounds a table in bytes; this build's has about 150.
const maxTable = 4 << 10

// OwnTable returns the table of this program.
func OwnTable() Table {
	t := Table{Binary: BuildID(), Numbers: map[string]versioning.Range{}}
	for _, kind := range versioning.Types() {
		t.Numbers[kind] = versioning.Bounds(kind)
	}
	return t
}

// ReadTable reads what a build published. Anything else is no table: nil.
func ReadTable(c converter.DataConverter, p *commonpb.Payload) *Table {
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

func (t *Table) equal(u Table) bool { return t.Binary == u.Binary && maps.Equal(t.Numbers, u.Numbers) }

// Publish puts the table of this program into the metadata of its worker deployment version, for "holdfast deploy" to
// read on any machine; [Run] does it by itself. The server knows the version a moment after the first poll, so it is
// tried until ctx ends. Publishing again what is there already writes nothing.
func Publish(ctx context.Context, c client.Client, deployment, build string) error {
	own := OwnTable()
	h := c.WorkerDeploymentClient().GetHandle(deployment)
	for {
		there, err := h.DescribeVersion(ctx, client.WorkerDeploymentDescribeVersionOptions{BuildID: build})
		if err == nil {
			if now := ReadTable(converter.GetDefaultDataConverter(), there.Info.Metadata[TableEntry]); now != nil && now.equal(own) {
				return nil
			}
			_, err = h.UpdateVersionMetadata(ctx, client.WorkerDeploymentUpdateVersionMetadataOptions{
				Version:        worker.WorkerDeploymentVersion{DeploymentName: deployment, BuildID: build},
				MetadataUpdate: client.WorkerDeploymentMetadataUpdate{UpsertEntries: map[string]any{TableEntry: own}},
			})
		}
		if err == nil {
			return nil
		}
		if isRefusal(err) {
			return fmt.Errorf("build %q of deployment %q cannot say which change numbers it understands: %w", build, deployment, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("build %q of deployment %q: %w", build, deployment, ctx.Err())
		case <-time.After(registerAgain):
		}
	}
}

// publish does that for this worker. Without it, only "holdfast deploy" knows less.
func (p *process) publish(ctx context.Context) {
	if p.status.Deployment == "" {
		return
	}
	limit, cancel := context.WithTimeout(ctx, registerWithin)
	defer cancel()
	if err := Publish(limit, p.client, p.status.Deployment, p.status.Build); err != nil && ctx.Err() == nil {
		p.log.Warn("what this build understands is not published; holdfast deploy will not know it", "reason", err)
	}
}
