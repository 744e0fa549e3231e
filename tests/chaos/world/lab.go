package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Options say where a harness works.
type Options struct {
	Dir string    // everything lies below it; it is made when it is not there and left when the lab is closed
	Log io.Writer // gets a line for what takes long; nil drops it
}

// A Lab is what all worlds of a harness share: programs and a Temporal server. It is safe for concurrent use.
type Lab struct {
	dir    string
	log    io.Writer
	bin    string     // folder of the programs
	clocks sync.Mutex // held while a worker is built whose clock is off

	sharing sync.Mutex
	shared  *Server         // of worlds that do nothing to theirs
	sharers map[*Server]int // worlds that are open, of each server that was ever shared
	shares  int

	mu      sync.Mutex
	port    int // that was given out last
	servers []*Server
	worlds  map[string]*World // that are open
	names   map[string]bool   // ever used
	widths  []time.Duration
}

// Open builds the programs and starts the server that worlds share unless they have one of their own.
func Open(ctx context.Context, o Options) (*Lab, error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	l := &Lab{
		dir: dir, log: o.Log, bin: filepath.Join(dir, "bin"), port: firstPort + rand.IntN(ports/2),
		worlds: map[string]*World{}, names: map[string]bool{}, sharers: map[*Server]int{},
	}
	if l.log == nil {
		l.log = io.Discard
	}
	if err := os.MkdirAll(l.bin, 0o700); err != nil {
		return nil, err
	}
	if err := l.build(ctx); err != nil {
		return nil, err
	}
	if l.shared, err = l.NewServer(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// Close ends all that still runs. Files stay.
func (l *Lab) Close() error {
	l.mu.Lock()
	var worlds []*World
	for _, w := range l.worlds {
		worlds = append(worlds, w)
	}
	servers := l.servers
	l.mu.Unlock()
	var all []error
	for _, w := range worlds {
		all = append(all, w.Close())
	}
	for _, s := range servers {
		all = append(all, s.Stop())
	}
	return errors.Join(all...)
}

func (l *Lab) say(format string, args ...any) { fmt.Fprintf(l.log, format+"\n", args...) }
