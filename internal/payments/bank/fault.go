package bank

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-run/holdfast/internal/payments"
)

// played are the faults that a bank can play.
var played = []payments.Fault{
	payments.FaultNone, payments.FaultRefuse, payments.FaultLose, payments.FaultDrop, payments.FaultSilence,
}

// Inflict queues faults for the next calls of a refunding tool, one for each, whichever bank with the books at path gets
// them. Each is an empty file in the folder path.faults; the bank that removes it plays it. Of package payments:
//
//   - FaultRefuse enters nothing and answers with an error;
//   - FaultLose enters nothing and ends the bank, so that there is no answer;
//   - FaultDrop enters, and ends the bank instead of answering;
//   - FaultSilence enters, and says nothing for as long as the caller waits.
//
// There is no FaultError: by an error an MCP server says that it has not done what it was asked for, and no worker can
// find out one that says so falsely.
func Inflict(path string, faults ...payments.Fault) error {
	if err := os.MkdirAll(folder(path), 0o700); err != nil {
		return fmt.Errorf("bank: %w", err)
	}
	now := time.Now().UnixNano()
	for i, f := range faults {
		if !slices.Contains(played, f) {
			return fmt.Errorf("bank: it cannot play the fault %q", f)
		}
		name := fmt.Sprintf("%d.%04d %s", now, i, f) // in this order they are listed
		if err := os.WriteFile(filepath.Join(folder(path), name), nil, 0o600); err != nil {
			return fmt.Errorf("bank: %w", err)
		}
	}
	return nil
}

func folder(path string) string { return path + ".faults" }

// next takes the fault of this call off the queue.
func next(path string) (payments.Fault, error) {
	waiting, err := os.ReadDir(folder(path))
	if errors.Is(err, fs.ErrNotExist) {
		return payments.FaultNone, nil
	}
	for _, file := range waiting {
		gone := os.Remove(filepath.Join(folder(path), file.Name()))
		if errors.Is(gone, fs.ErrNotExist) {
			continue // another bank plays it
		}
		_, fault, _ := strings.Cut(file.Name(), " ")
		return payments.Fault(fault), gone
	}
	return payments.FaultNone, err
}

// before does what is wrong before the entry.
func before(f payments.Fault) error {
	switch f {
	case payments.FaultRefuse:
		return errors.New("closed for a moment: nothing was entered")
	case payments.FaultLose:
		os.Exit(1)
	}
	return nil
}

// after does what is wrong after the entry.
func after(ctx context.Context, f payments.Fault) {
	switch f {
	case payments.FaultDrop:
		os.Exit(1)
	case payments.FaultSilence:
		<-ctx.Done()
	}
}
