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
	// Serial is of the configuration in force at the worker that spoke last. What has seen a higher one is refused.
	Serial int64 `json:"serial,omitempty"`
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

func (t *Table) equal(u Table) bool {
	return t.Binary == u.Binary && t.Serial == u.Serial && maps.Equal(t.Numbers, u.Numbers)
}

// Publish puts the table of this program, with the serial of its configuration, into the metadata of its worker
// deployment version, for "holdfast deploy" to read on any machine; [Run] does it by itself. The server knows the version a moment after the first poll, so it is
// tried until ctx ends. Publishing again what is there already writes nothing.
func Publish(ctx context.Context, c client.Client, deployment, build string, serial int64) error {
	own := OwnTable()
	own.Serial = serial
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

// publish does that for this worker, at its start and whenever its configuration has another serial, until ctx ends.
// Without it, only "holdfast deploy" knows less.
func (p *process) publish(ctx context.Context) {
	if p.status.Deployment == "" {
		return
	}
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for told := int64(-1); ctx.Err() == nil; {
		if serial := p.live.config().Serial; serial != told {
			told = serial
			p.tell(ctx, serial)
		}
		select {
		case <-ctx.Done():
		case <-look.C:
		}
	}
}

func (p *process) tell(ctx context.Context, serial int64) {
	limit, cancel := context.WithTimeout(ctx, registerWithin)
	defer cancel()
	if err := Publish(limit, p.client, p.status.Deployment, p.status.Build, serial); err != nil && ctx.Err() == nil {
		p.log.Warn("what this build understands is not published; holdfast deploy will not know it", "reason", err)
	}
}
