package payments

import (
	"encoding/json"
	"errors"
	"fmt"
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
	// IgnoreKeys makes the service one that knows nothing of idempotency: each request is an entry.
	IgnoreKeys bool
	// FailAfterCommit is how many answers to requests that made an entry are a 500 instead.
	FailAfterCommit int
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
	failures int            // how many 500s are left
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
		cfg: cfg, books: b, orders: map[string]Order{}, mux: http.NewServeMux(),
		requests: map[string]int{}, failures: cfg.FailAfterCommit,
	}
	for _, o := range cfg.Orders {
		s.orders[o.ID] = o
	}
	s.mux.HandleFunc("GET /orders/{id}", s.order)
	s.mux.HandleFunc("POST /refunds", s.refund)
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

func (s *Service) show(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.Books()) }

func (s *Service) order(w http.ResponseWriter, r *http.Request) {
	o, found := s.orders[r.PathValue("id")]
	if !found {
		fail(w, http.StatusNotFound, fmt.Errorf("no order %q", r.PathValue("id")))
		return
	}
	reply(w, http.StatusOK, o)
}

func (s *Service) refund(w http.ResponseWriter, r *http.Request) {
	key, err := parseKey(r.Header.Values("Idempotency-Key"))
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	req, err := readRequest(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	if status, err := s.acceptable(req); err != nil {
		fail(w, status, err)
		return
	}
	s.count(key)
	e, made, err := s.books.enter(key, req.Order, req.Amount, s.cfg.IgnoreKeys)
	if err != nil {
		fail(w, http.StatusServiceUnavailable, err)
		return
	}
	if e.Order != req.Order || e.Amount != req.Amount {
		fail(w, http.StatusUnprocessableEntity, fmt.Errorf("Idempotency-Key %q was used for another refund: use a new key", key))
		return
	}
	s.answer(w, r, e, made)
}

// acceptable says with which status a request is refused, if it is.
func (s *Service) acceptable(req request) (int, error) {
	o, found := s.orders[req.Order]
	switch {
	case !found:
		return http.StatusNotFound, fmt.Errorf("no order %q", req.Order)
	case req.Amount <= 0:
		return http.StatusUnprocessableEntity, fmt.Errorf("amount %s: want more than nothing", req.Amount)
	case req.Amount > o.Total:
		return http.StatusUnprocessableEntity, fmt.Errorf("amount %s: order %q was only %s", req.Amount, o.ID, o.Total)
	}
	return 0, nil
}

func (s *Service) answer(w http.ResponseWriter, r *http.Request, e Entry, made bool) {
	if tell := s.cfg.OnRepeat; !made && tell != nil {
		tell(e.Key)
	}
	if tell := s.cfg.OnCommit; made && tell != nil {
		tell(e.Key)
	}
	if s.cfg.Delay > 0 {
		select {
		case <-time.After(s.cfg.Delay):
		case <-r.Context().Done():
			return
		}
	}
	if made && s.failNow() {
		fail(w, http.StatusInternalServerError, errors.New("internal error"))
		return
	}
	reply(w, http.StatusCreated, receipt{Refund: e.Refund, Order: e.Order, Amount: e.Amount})
}

// A receipt is the answer to a refund. It says nothing that differs between two worlds in which the same
// thing happened, so that a test can compare what an agent heard in both.
type receipt struct {
	Refund string `json:"refund"`
	Order  string `json:"order"`
	Amount Amount `json:"amount"`
}

func (s *Service) count(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[key]++
}

func (s *Service) failNow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures--
	return s.failures >= 0
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
