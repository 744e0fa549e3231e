package modeltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	maxRequest  = 64 << 20 // bytes
	maxBreaches = 100      // kept; one is enough to fail a test
)

// Config says what a server plays.
type Config struct {
	// Steps are played in order; after the last every request gets {"content":"done"}.
	Steps []Step
	// Func, when set, decides instead of Steps.
	Func Func
	// Latency is waited before every answer.
	Latency time.Duration
	// Key, when set, is the bearer token that requests must carry; others get a 401.
	Key string
	// Addr is where to listen; empty is a free port on 127.0.0.1.
	Addr string
	// Forget keeps no requests, for long benchmarks; breaches and charges are counted all the same.
	Forget bool
}

// A Func decides the next answer from the request alone, so that any number of conversations go on at
// once. It is called from many goroutines.
type Func func(Request) Step

// Charges is what a provider would have charged for: answers that were sent whole.
type Charges struct {
	Answers       int
	Input, Output int64 // tokens, as reported in each answer's usage
}

// A Server plays a [Config]. It is safe for concurrent use.
type Server struct {
	cfg Config
	url string
	srv *http.Server
	end chan struct{}

	mu       sync.Mutex
	steps    int // played
	count    int // requests
	requests []Request
	breaches []string
	charges  Charges
}

// Start starts a server.
func Start(c Config) (*Server, error) {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("scripted model server: %w", err)
	}
	s := &Server{cfg: c, url: "http://" + l.Addr().String() + "/v1", end: make(chan struct{})}
	s.srv = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.end)
		_ = s.srv.Serve(l) // always ends with ErrServerClosed
	}()
	return s, nil
}

// URL returns the base URL for a client, such as "http://127.0.0.1:4321/v1".
func (s *Server) URL() string { return s.url }

// Close stops the server and cuts what is open.
func (s *Server) Close() error {
	err := s.srv.Close()
	<-s.end
	return err
}

// Count returns how many requests came.
func (s *Server) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

// Requests returns what was sent so far, in the order of arrival.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Breaches returns what a strict provider would have refused, each with its request and reason; at most
// the first 100.
func (s *Server) Breaches() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.breaches...)
}

// Charges returns what a provider would have charged so far. An answer counts from just before its last
// bytes are sent, so that whoever has the answer finds it counted.
func (s *Server) Charges() Charges {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.charges
}

// ServeHTTP answers one request for a completion.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/chat/completions") {
		http.NotFound(w, r)
		return
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		return // the client went away, or was told that it sent too much
	}
	q := judge(raw)
	q.At, q.Header = at, r.Header
	step := s.next(q)
	if s.cfg.Key != "" && r.Header.Get("Authorization") != "Bearer "+s.cfg.Key {
		step = Fail(http.StatusUnauthorized, "invalid_api_key", "Incorrect API key provided")
	}
	wait := s.cfg.Latency + time.Duration(step.Sleep*float64(time.Second))
	if err := pause(r.Context(), wait); err != nil {
		return
	}
	s.send(w, r, q, render(step, q))
}

// next keeps the request and returns the step that answers it.
func (s *Server) next(q Request) Step {
	s.mu.Lock()
	s.count++
	if !s.cfg.Forget {
		s.requests = append(s.requests, q)
	}
	for _, b := range q.Breaches {
		if len(s.breaches) < maxBreaches {
			s.breaches = append(s.breaches, fmt.Sprintf("request %d: %s", s.count, b))
		}
	}
	step := Say("done")
	if s.cfg.Func == nil && s.steps < len(s.cfg.Steps) {
		step = s.cfg.Steps[s.steps]
		s.steps++
	}
	s.mu.Unlock()
	if s.cfg.Func != nil {
		return s.cfg.Func(q)
	}
	return step
}

// send writes the reply, or as much of it as the step wants.
func (s *Server) send(w http.ResponseWriter, r *http.Request, q Request, p reply) {
	if p.close == "before" {
		panic(http.ErrAbortHandler) // net/http then closes the connection without a word
	}
	for name, value := range p.headers {
		w.Header().Set(name, value)
	}
	if !p.stream {
		w.Header().Set("Content-Length", fmt.Sprint(len(p.body)))
	}
	w.WriteHeader(p.status)
	flush := http.NewResponseController(w).Flush
	switch p.close {
	case "after_headers":
		_ = flush()
		panic(http.ErrAbortHandler)
	case "half":
		_, _ = w.Write(p.body[:len(p.body)/2])
		_ = flush()
		panic(http.ErrAbortHandler)
	}
	pieces := p.pieces()
	for i, piece := range pieces {
		if i == len(pieces)-1 && p.output > 0 && r.Context().Err() == nil {
			s.charge(q, p)
		}
		if _, err := w.Write(piece); err != nil || flush() != nil {
			return
		}
	}
}

func (s *Server) charge(q Request, p reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.charges.Answers++
	s.charges.Input += q.tokens()
	s.charges.Output += p.output
}

// pause waits for d or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return errors.New("the client went away")
	}
}
