package payments

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

func (s *Service) refund(w http.ResponseWriter, r *http.Request) {
	key, err := s.key(r)
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
	if e, ok := s.enter(w, r, Entry{Key: key, Order: req.Order, Amount: req.Amount}); ok {
		s.answer(w, r, receipt{Refund: e.Refund, Order: e.Order, Amount: e.Amount})
	}
}

// void takes a refund back, as often as it is told to under another key: as with refunds, a caller that loses its
// key must show up in the books.
func (s *Service) void(w http.ResponseWriter, r *http.Request) {
	key, err := s.key(r)
	if err == nil {
		err = emptyBody(http.MaxBytesReader(w, r.Body, maxRequest))
	}
	if err != nil {
		fail(w, http.StatusBadRequest, err)
		return
	}
	refunds := s.refunds()
	i := slices.IndexFunc(refunds, func(f finding) bool { return f.Refund == r.PathValue("refund") })
	if i < 0 {
		fail(w, http.StatusNotFound, fmt.Errorf("no refund %q", r.PathValue("refund")))
		return
	}
	f := refunds[i]
	if e, ok := s.enter(w, r, Entry{Key: key, Order: f.Order, Amount: f.Amount, Voids: f.Refund}); ok {
		s.answer(w, r, voided{Void: e.Refund, Refund: e.Voids, Order: e.Order, Amount: e.Amount})
	}
}

// key reads the idempotency key, which a service that ignores them does not ask for.
func (s *Service) key(r *http.Request) (string, error) {
	values := r.Header.Values("Idempotency-Key")
	if s.cfg.IgnoreKeys && len(values) == 0 {
		return "", nil
	}
	return parseKey(values)
}

// emptyBody wants no body or an empty object, which is how a client may send no arguments.
func emptyBody(r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("body: %w", err)
	}
	if t := strings.TrimSpace(string(b)); t != "" && t != "{}" {
		return errors.New("body: want none, or {}")
	}
	return nil
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

// enter makes the entry, or finds the one that an earlier request of the key made. When neither, it has answered.
func (s *Service) enter(w http.ResponseWriter, r *http.Request, want Entry) (e Entry, ok bool) {
	s.count(want.Key)
	fault := s.nextFault()
	if fault.before(w) {
		return e, false
	}
	e, made, err := s.books.enter(want, s.cfg.IgnoreKeys)
	if err != nil {
		fail(w, http.StatusServiceUnavailable, err)
		return e, false
	}
	if !e.same(want) {
		fail(w, http.StatusUnprocessableEntity, fmt.Errorf("Idempotency-Key %q was used for another request: use a new key", want.Key))
		return e, false
	}
	s.tell(e.Key, made)
	return e, !fault.after(w, r)
}

func (s *Service) tell(key string, made bool) {
	if tell := s.cfg.OnRepeat; !made && tell != nil {
		tell(key)
	}
	if tell := s.cfg.OnCommit; made && tell != nil {
		tell(key)
	}
}

func (s *Service) answer(w http.ResponseWriter, r *http.Request, v any) {
	if s.cfg.Delay > 0 {
		select {
		case <-time.After(s.cfg.Delay):
		case <-r.Context().Done():
			return
		}
	}
	reply(w, http.StatusCreated, v)
}

// A receipt is the answer to a refund. It says nothing that differs between two worlds in which the same
// thing happened, so that a test can compare what an agent heard in both.
type receipt struct {
	Refund string `json:"refund"`
	Order  string `json:"order"`
	Amount Amount `json:"amount"`
}

// A voided is the answer to the taking back of a refund.
type voided struct {
	Void   string `json:"void"`
	Refund string `json:"refund"`
	Order  string `json:"order"`
	Amount Amount `json:"amount"`
}

func (s *Service) count(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests[key]++
}
