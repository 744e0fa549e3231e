package demo

import (
	"errors"
	"fmt"

	"github.com/holdfast-run/holdfast/internal/payments"
)

// judge says what the books show and whether that is the promise.
func (s *stage) judge() error {
	books := s.payments.Books()
	s.say.plain("\nThe books: %s", summary(books))
	for _, e := range books.Entries {
		s.say.plain("  %s  %s for order %s  %s", e.Refund, e.Amount, e.Order, e.Key)
	}
	killed := s.killedAt()
	if err := verdict(books, killed.IsZero()); err != nil {
		return err
	}
	s.say.plain("From the kill to the finished turn: %.1f s", s.finished.Sub(killed).Seconds())
	return nil
}

// verdict returns what is wrong with the books after a turn that is done.
func verdict(b payments.Books, unharmed bool) error {
	switch n := len(b.Entries); {
	case n == 0:
		return errors.New("the books show no refund: the model never asked for it")
	case n > 1:
		return fmt.Errorf("the books show %d refunds, want exactly 1", n)
	case b.Entries[0].Order != order || b.Entries[0].Amount != price:
		return fmt.Errorf("the books show %s for order %s, want %s for order %s", b.Entries[0].Amount, b.Entries[0].Order, price, order)
	case unharmed:
		return errors.New("the worker was never killed: nothing was shown")
	case len(b.Requests) != 1:
		return fmt.Errorf("refunds were asked for under %d keys, want 1", len(b.Requests))
	}
	return nil
}

// summary is the books in a line: "1 refund of 19.90 for order 42, 2 requests with the same key".
func summary(b payments.Books) string {
	requests := 0
	for _, n := range b.Requests {
		requests += n
	}
	keys := "the same key"
	if len(b.Requests) != 1 {
		keys = fmt.Sprintf("%d keys", len(b.Requests))
	}
	what := fmt.Sprintf("%d refunds", len(b.Entries))
	if len(b.Entries) == 1 {
		what = fmt.Sprintf("1 refund of %s for order %s", b.Entries[0].Amount, b.Entries[0].Order)
	}
	return fmt.Sprintf("%s, %d requests with %s", what, requests, keys)
}
