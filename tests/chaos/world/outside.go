package world

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/internal/modeltest"
	"github.com/holdfast-run/holdfast/internal/payments"
	"github.com/holdfast-run/holdfast/internal/payments/bank"
	"github.com/holdfast-run/holdfast/tests/chaos/link"
	"github.com/holdfast-run/holdfast/tests/chaos/witness"
)

// surround starts what workers talk to, and the links between.
func (w *World) surround(ctx context.Context) (err error) {
	if w.Model, err = modeltest.Start(modeltest.Config{Func: w.cfg.Model}); err != nil {
		return err
	}
	w.closers = append(w.closers, w.Model.Close)
	shop, err := w.open(ctx)
	if err != nil {
		return err
	}
	if w.kind.mcp {
		w.BankBooks = filepath.Join(w.Dir, "bank")
	}
	model := strings.TrimSuffix(strings.TrimPrefix(w.Model.URL(), "http://"), "/v1")
	for _, l := range []struct {
		to     **link.Link
		target string
	}{{&w.ModelLink, model}, {&w.DestinationLink, shop}, {&w.ServerLink, w.Server.Address()}} {
		if *l.to, err = link.New(l.target); err != nil {
			return err
		}
		w.closers = append(w.closers, (*l.to).Close)
	}
	return nil
}

// open starts the payments service and returns its address.
func (w *World) open(ctx context.Context) (string, error) {
	pay, err := payments.New(payments.Config{
		Path: filepath.Join(w.Dir, "books"),
		Orders: []payments.Order{
			{ID: "42", Item: "kettle", Status: "delivered", Total: 1990},
			{ID: "43", Item: "toaster", Status: "delivered", Total: 2990},
			{ID: "44", Item: "oven", Status: "delivered", Total: 9900},
		},
		IgnoreKeys: w.kind.ignoresKeys, Unaskable: w.kind.unaskable,
	})
	if err != nil {
		return "", err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", errors.Join(err, pay.Close())
	}
	web := &http.Server{Handler: pay, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = web.Serve(listener) // always ends with ErrServerClosed
	}()
	w.closers = append(w.closers, func() error {
		err := web.Close()
		<-done
		return errors.Join(err, pay.Close())
	})
	if !w.kind.mcp {
		w.Pay = pay
	}
	return listener.Addr().String(), nil
}

// Inflict has the next n requests to pay go wrong in the way of a fault of package payments. The bank can play those
// that do not begin with a status.
func (w *World) Inflict(fault string, n int) error {
	faults := slices.Repeat([]payments.Fault{payments.Fault(fault)}, n)
	if w.kind.mcp {
		return bank.Inflict(w.BankBooks, faults...)
	}
	w.Pay.Inflict(faults...)
	return nil
}

// Made is what the destination says it has made.
func (w *World) Made() (made []witness.Entry, err error) {
	if !w.kind.mcp {
		for _, e := range w.Pay.Books().Entries {
			made = append(made, witness.Entry{ID: e.Refund, Key: e.Key, Order: e.Order, Amount: e.Amount.String(), Voids: e.Voids})
		}
		return made, nil
	}
	all, err := bank.Read(w.BankBooks)
	for _, t := range all {
		if t.Made {
			made = append(made, witness.Entry{Key: t.Key, Order: t.Order, Amount: t.Amount})
		}
	}
	return made, err
}

// Requests is how many requests to pay the destination had for each key.
func (w *World) Requests() map[string]int {
	if !w.kind.mcp {
		return w.Pay.Books().Requests
	}
	out := map[string]int{}
	all, _ := bank.Read(w.BankBooks) // Made tells of what cannot be read
	for _, t := range all {
		out[t.Key]++
	}
	return out
}
