package payments

import (
	"errors"
	"fmt"
	"net/http"
)

func (s *Service) show(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, s.Books()) }

func (s *Service) order(w http.ResponseWriter, r *http.Request) {
	if o, found := s.known(w, r.PathValue("id")); found {
		reply(w, http.StatusOK, o)
	}
}

// known returns an order, or answers that there is none.
func (s *Service) known(w http.ResponseWriter, id string) (Order, bool) {
	o, found := s.orders[id]
	if !found {
		fail(w, http.StatusNotFound, fmt.Errorf("no order %q", id))
	}
	return o, found
}

// A state is what changes about an order: what was refunded of it and not taken back.
type state struct {
	Order    string `json:"order"`
	Status   string `json:"status"`
	Refunded Amount `json:"refunded"`
	Refunds  int    `json:"refunds"`
}

func (s *Service) state(w http.ResponseWriter, r *http.Request) {
	o, found := s.known(w, r.PathValue("id"))
	if !found {
		return
	}
	out := state{Order: o.ID, Status: o.Status}
	for _, f := range s.refunds() {
		if f.Order == o.ID && !f.Void {
			out.Refunded += f.Amount
			out.Refunds++
		}
	}
	reply(w, http.StatusOK, out)
}

// A finding is a refund as the service tells of it afterwards.
type finding struct {
	Refund string `json:"refund"`
	Key    string `json:"key"`
	Order  string `json:"order"`
	Amount Amount `json:"amount"`
	Void   bool   `json:"void"` // it was taken back
}

// find answers by key, by order, or by both. A key also finds an entry that took a refund back.
func (s *Service) find(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if !q.Has("key") && !q.Has("order") {
		fail(w, http.StatusBadRequest, errors.New("no filter: ask with ?key= or ?order="))
		return
	}
	asked := func(key, order string) bool {
		return (!q.Has("key") || q.Get("key") == key) && (!q.Has("order") || q.Get("order") == order)
	}
	out := struct {
		Refunds []finding `json:"refunds"`
		Voids   []Entry   `json:"voids,omitempty"`
	}{Refunds: []finding{}}
	for _, f := range s.refunds() {
		if asked(f.Key, f.Order) {
			out.Refunds = append(out.Refunds, f)
		}
	}
	for _, e := range s.books.all() {
		if e.Voids != "" && asked(e.Key, e.Order) {
			out.Voids = append(out.Voids, e)
		}
	}
	reply(w, http.StatusOK, out)
}

// refunds returns the refunds, each with what became of it.
func (s *Service) refunds() []finding {
	entries, void := s.books.all(), map[string]bool{}
	for _, e := range entries {
		void[e.Voids] = true
	}
	var out []finding
	for _, e := range entries {
		if e.Voids == "" {
			out = append(out, finding{e.Refund, e.Key, e.Order, e.Amount, void[e.Refund]})
		}
	}
	return out
}
