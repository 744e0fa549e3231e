package worker

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-run/holdfast/agent"
)

// startProcess has everything of a worker but its pollers.
func startProcess(t *testing.T, f *fakeTemporal, dir string) (p *process, stop func()) {
	t.Helper()
	c, err := parseWith(nil, dir, least)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	p = &process{log: log, live: &live{fleet: newFleet(log), log: log}, fatal: make(chan error, 1)}
	if p.store, err = openStore(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := p.live.begin(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	p.client = connect(t, f)
	p.status = Status{Identity: "holdfast@test", TaskQueue: agent.TaskQueue, Namespace: f.namespace, Build: "b1", Store: p.store.ID()}
	ctx, cancel := context.WithCancel(t.Context())
	if err := p.listen(ctx, "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p, cancel
}

func get(t *testing.T, p *process, path string) (int, Status) {
	t.Helper()
	r, err := http.Get("http://" + p.status.Health + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var s Status
	if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, s
}

func TestReadyMeansThatTemporalSeesThisWorkerPollAndTheStoreIsRead(t *testing.T) {
	t.Parallel()
	f := &fakeTemporal{namespace: "team", pollers: []string{"somebody@else"}}
	dir := t.TempDir()
	p, stop := startProcess(t, f, dir)
	expect := func(when string, code int, check, says string) {
		t.Helper()
		got, s := get(t, p, "/readyz")
		if got != code || !strings.Contains(s.Checks[check], says) {
			t.Errorf("%s: %d, %+v; want %d and %s: %s", when, got, s, code, check, says)
		}
	}
	expect("another worker polls", 503, "polling", `no poll of "holdfast@test"`)
	f.mu.Lock()
	f.pollers = append(f.pollers, "holdfast@test")
	f.mu.Unlock()
	expect("this one polls", 200, "polling", "ok")
	if code, s := get(t, p, "/healthz"); code != 200 || s.Build != "b1" || s.Serial != 1 || s.Digest == "" {
		t.Errorf("healthz: %d, %+v", code, s)
	}
	if err := os.RemoveAll(dir + "/.holdfast"); err != nil {
		t.Fatal(err)
	}
	// What was answered a moment ago may be answered again, so the age of the answer is taken away.
	p.endpoints.mu.Lock()
	p.endpoints.at = time.Time{}
	p.endpoints.mu.Unlock()
	expect("the store is gone", 503, "store", "")
	stop()
	expect("it stops", 503, "polling", "stopping")
	if code, _ := get(t, p, "/healthz"); code != 200 {
		t.Errorf("healthz while stopping: %d", code)
	}
}

func TestATakenHealthPortSaysSo(t *testing.T) {
	t.Parallel()
	p, _ := startProcess(t, &fakeTemporal{namespace: "team"}, t.TempDir())
	err := (&process{log: p.log, store: p.store}).listen(t.Context(), p.status.Health)
	if err == nil || !strings.Contains(err.Error(), "choose another under worker.health") {
		t.Errorf("got %v", err)
	}
}
