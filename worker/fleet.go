package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/tool"
)

// retireAfter is how long a server that the file no longer names lives on: calls that run on it end
// within their timeouts, and a turn that began before the change may still want it.
const retireAfter = 15 * time.Minute

// A fleet keeps MCP servers running while their part of the file stays the same.
type fleet struct {
	log *slog.Logger

	mu      sync.Mutex
	running map[string]ship
	retired map[*tool.MCPServer]*time.Timer
}

// A ship is a running server and the digest of the configuration that it was started with.
type ship struct {
	part   agent.Digest
	server *tool.MCPServer
}

func newFleet(log *slog.Logger) *fleet {
	return &fleet{log: log, running: map[string]ship{}, retired: map[*tool.MCPServer]*time.Timer{}}
}

// part digests what a server is started with. It stays in memory: secrets are in it.
func part(c tool.MCPConfig) agent.Digest {
	b, err := json.Marshal(c)
	if err != nil {
		// Text, numbers and maps of them always have a JSON form.
		return agent.DigestOf(fmt.Appendf(nil, "%+v", c))
	}
	return agent.DigestOf(b)
}

// start connects the servers of c that do not run yet, all at the same time, and returns all of them
// together with the problems of those that did not start. They join the fleet with [fleet.keep], or are
// closed by [fleet.drop]. refuse are addresses that no server may have.
func (f *fleet) start(ctx context.Context, c *Config, refuse []string) (map[string]ship, []Problem) {
	f.mu.Lock()
	now := f.running
	f.mu.Unlock()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		ships = map[string]ship{}
		d     = c.problemsAt()
	)
	for _, name := range sortedKeys(c.Tools) {
		if c.Tools[name].MCP == nil {
			continue
		}
		cfg := c.Tools[name].mcpConfig(name)
		cfg.Refuse = refuse
		p := part(cfg)
		if s, ok := now[name]; ok && s.part == p {
			mu.Lock()
			ships[name] = s
			mu.Unlock()
			continue
		}
		wg.Go(func() {
			m, err := tool.ConnectMCP(ctx, cfg, c.mask)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				d.failServer("tools/"+name, c.mask.Error(err))
				return
			}
			ships[name] = ship{p, m}
		})
	}
	wg.Wait()
	return ships, sortProblems(d.problems)
}

// keep makes ships the running ones; those that are no longer among them are retired.
func (f *fleet) keep(ships map[string]ship) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, old := range f.running {
		if ships[name].server != old.server {
			f.log.Info("MCP server is retired", "server", name, "closes", retireAfter.String())
			f.retired[old.server] = time.AfterFunc(retireAfter, func() { f.close(old.server) })
		}
	}
	f.running = ships
}

// drop closes those of ships that do not run.
func (f *fleet) drop(ships map[string]ship) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, s := range ships {
		if f.running[name].server != s.server {
			s.server.Close()
		}
	}
}

func (f *fleet) close(m *tool.MCPServer) {
	f.mu.Lock()
	_, ok := f.retired[m]
	delete(f.retired, m)
	f.mu.Unlock()
	if ok {
		m.Close()
	}
}

// stop closes all servers, running and retired, and returns when they are gone.
func (f *fleet) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var wg sync.WaitGroup
	for m, timer := range f.retired {
		timer.Stop()
		wg.Go(m.Close)
	}
	for _, s := range f.running {
		wg.Go(s.server.Close)
	}
	wg.Wait()
	f.running, f.retired = map[string]ship{}, map[*tool.MCPServer]*time.Timer{}
}

func byName(ships map[string]ship) servers {
	out := servers{}
	for name, s := range ships {
		out[name] = s.server
	}
	return out
}
