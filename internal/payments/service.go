package payments

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// An Order is something that was sold and may be refunded.
type Order struct {
	ID     string `json:"id"`
	Item   string `json:"item"`
	Status string `json:"status"`
	Total  Amount `json:"total"`
}

// Config describes a service. Path is required; the zero value of the rest is a well-behaved service
// without orders.
type Config struct {
	// Path is the file of the books. It is made when it is not there and reloaded when it is.
	Path   string
	Orders []Order
	// OnCommit is called for each request that made an entry, after the entry is on disk and before
	// the answer is written. It must be safe for concurrent use.
	OnCommit func(key string)
	// OnRepeat is called for each request that is answered with the entry of an earlier one.
	OnRepeat func(key string)
	// IgnoreKeys makes the service one that knows nothing of idempotency: each request is an entry, and one
	// without a key is taken too.
	IgnoreKeys bool
	// Unaskable makes the service one that does not say what it has made: there is no GET /refunds.
	Unaskable bool
	// Delay is how long an answer is held back after the entry is on disk.
	Delay time.Duration
}

// A Service is the http.Handler of a payments service. Close it when no request runs any more.
type Service struct {
	cfg    Config
	books  *books
	orders map[string]Order
	mux    *http.ServeMux

	mu       sync.Mutex
	requests map[string]int // accepted requests for a refund, by key
	faults   []Fault        // of the next requests
}

// New opens the books.
func New(cfg Config) (*Service, error) {
	if cfg.Path == "" {
		return nil, errors.New("payments: no path for the books: set Config.Path")
	}
	b, err := openBooks(cfg.Path)
	if err != nil {
		return nil, err
	}
	s := &Service{
		cfg: cfg, books: b, orders: map[string]Order{}, mux: http.NewServeMux(), requests: map[string]int{},
	}
	for _, o := range cfg.Orders {
		s.orders[o.ID] = o
	}
	s.mux.HandleFunc("GET /orders/{id}", s.order)
	s.mux.HandleFunc("GET /orders/{id}/state", s.state)
	s.mux.HandleFunc("POST /refunds", s.refund)
	s.mux.HandleFunc("POST /refunds/{refund}/void", s.void)
	if !cfg.Unaskable {
		s.mux.HandleFunc("GET /refunds", s.find)
	}
	s.mux.HandleFunc("GET /books", s.show)
	return s, nil
}

// Close closes the books.
func (s *Service) Close() error { return s.books.file.Close() }

// ServeHTTP answers one request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Books is what the service knows: its entries, durable, and since it was opened the requests that were
// well-formed enough to be for one, by idempotency key.
type Books struct {
	Entries  []Entry        `json:"entries"`
	Requests map[string]int `json:"requests"`
}

// Books returns a copy of the books.
func (s *Service) Books() Books {
	out := Books{Entries: s.books.all(), Requests: map[string]int{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, n := range s.requests {
		out.Requests[k] = n
	}
	return out
}

func fail(w http.ResponseWriter, status int, err error) {
	reply(w, status, map[string]string{"error": err.Error()})
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The status is sent: a caller that went away is the only error left.
	_ = json.NewEncoder(w).Encode(v)
}
