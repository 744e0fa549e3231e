package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/payments"
)

// An entry is what the ledger holds of one effect, and what people decided about it.
type entry struct {
	agent.Effect
	Approvals []agent.Approval
}

// approvedBy returns who has approved, "" if nobody's signature proves it.
func (e entry) approvedBy() string {
	for _, a := range e.Approvals {
		if a.ID == e.Approval && a.Outcome == agent.OutcomeApproved && len(a.Decisions) == 1 && !a.Decisions[0].Claimed {
			return a.Decisions[0].Approver
		}
	}
	return ""
}

// judge says what the books and the ledger show and whether that is the promise.
func (s *stage) judge(ctx context.Context) error {
	books, kills := s.payments.Books(), s.killedAt()
	ledger, err := s.ledger(ctx)
	if err != nil {
		return err
	}
	s.say.plain("\nThe books: %s", summary(books))
	for _, e := range books.Entries {
		s.say.plain("  %s  %s for order %s  %s", e.Refund, e.Amount, e.Order, e.Key)
	}
	s.say.plain("The ledger: %s", counted(len(ledger), "effect"))
	for _, e := range ledger {
		s.say.plain("  %s: %s, rule %s, policy %s  %s", e.Summary, e.State, e.Verdict.Rule, e.Verdict.Policy, e.Key)
		if who := e.approvedBy(); who != "" {
			s.say.plain("  approved by %s, signed", who)
		}
	}
	if s.declined {
		s.say.plain("You declined: nothing was sent. To see a refund survive two kills, run it again and approve.")
		return untouched(books, ledger)
	}
	if err := verdict(books, ledger, s.approver(), len(kills)); err != nil {
		return err
	}
	s.say.plain("From the first kill to the finished turn: %.1f s", s.finished.Sub(kills[0]).Seconds())
	return nil
}

// ledger asks for the effects as a person would.
func (s *stage) ledger(ctx context.Context) ([]entry, error) {
	var found struct{ Effects []entry }
	if err := s.query(ctx, &found, "effects", session); err != nil {
		return nil, err
	}
	for i := range found.Effects {
		if err := s.query(ctx, &found.Effects[i], "effects", "show", found.Effects[i].Key); err != nil {
			return nil, err
		}
	}
	return found.Effects, nil
}

// verdict returns what is wrong with the books and the ledger after a turn that is done.
func verdict(b payments.Books, ledger []entry, approver string, kills int) error {
	switch n := len(b.Entries); {
	case n == 0:
		return errors.New("the books show no refund: the model never asked for it")
	case n > 1:
		return fmt.Errorf("the books show %d refunds, want exactly 1", n)
	case b.Entries[0].Order != order || b.Entries[0].Amount != price:
		return fmt.Errorf("the books show %s for order %s, want %s for order %s", b.Entries[0].Amount, b.Entries[0].Order, price, order)
	case len(b.Requests) != 1:
		return fmt.Errorf("refunds were asked for under %d keys, want 1", len(b.Requests))
	case kills != 2:
		return fmt.Errorf("the worker was killed %s, want 2: nothing was shown", counted(kills, "time"))
	}
	sent := mayHaveSent(ledger)
	switch {
	case len(sent) != 1 || sent[0].State != agent.StateCommitted || sent[0].Key != b.Entries[0].Key:
		return errors.New("the ledger does not say what the books say: want 1 effect, committed, under the key of the books")
	case sent[0].approvedBy() != approver || sent[0].Verdict.Policy == "":
		return fmt.Errorf("the ledger does not say that %s approved the refund, and under which policy", approver)
	}
	return nil
}

// untouched returns what is wrong after a turn whose refund was declined.
func untouched(b payments.Books, ledger []entry) error {
	switch {
	case len(b.Entries) > 0 || len(b.Requests) > 0:
		return fmt.Errorf("the refund was declined, and the books show %s", summary(b))
	case len(ledger) == 0 || len(mayHaveSent(ledger)) > 0:
		return errors.New("the ledger does not say that the refund was declined")
	}
	return nil
}

// mayHaveSent returns what did not end before it was sent: a model of somebody else's may also have asked for what
// was refused.
func mayHaveSent(ledger []entry) []entry {
	return slices.DeleteFunc(slices.Clone(ledger), func(e entry) bool {
		return e.State == agent.StateDeclined || e.State == agent.StateDenied || e.State == agent.StateFailed
	})
}

// summary is the books in a line: "1 refund of 19.90 for order 42, 2 requests with the same key".
func summary(b payments.Books) string {
	requests := 0
	for _, n := range b.Requests {
		requests += n
	}
	keys := "the same key"
	if len(b.Requests) != 1 {
		keys = counted(len(b.Requests), "key")
	}
	what := counted(len(b.Entries), "refund")
	if len(b.Entries) == 1 {
		what = fmt.Sprintf("1 refund of %s for order %s", b.Entries[0].Amount, b.Entries[0].Order)
	}
	return fmt.Sprintf("%s, %s with %s", what, counted(requests, "request"), keys)
}

func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
