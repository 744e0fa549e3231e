package payments

import (
	"errors"
	"net/http"
)

// A Fault is what goes wrong with one request that would have made an entry, or found the one that it had made.
type Fault string

// The faults.
const (
	FaultNone Fault = ""
	// FaultRefuse answers 503 and enters nothing.
	FaultRefuse Fault = "refuse"
	// FaultLose drops the connection and enters nothing.
	FaultLose Fault = "lose"
	// FaultDrop enters, and drops the connection instead of answering.
	FaultDrop Fault = "drop"
	// FaultError enters, and answers 500.
	FaultError Fault = "error"
	// FaultSilence enters, and says nothing for as long as the caller waits.
	FaultSilence Fault = "silence"
)

// Inflict queues faults for the next requests, one for each.
func (s *Service) Inflict(faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, faults...)
}

func (s *Service) nextFault() Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.faults) == 0 {
		return FaultNone
	}
	f := s.faults[0]
	s.faults = s.faults[1:]
	return f
}

// before does what is wrong before the entry, and says whether the request is over.
func (f Fault) before(w http.ResponseWriter) bool {
	switch f {
	case FaultRefuse:
		fail(w, http.StatusServiceUnavailable, errors.New("closed for a moment: nothing was entered"))
		return true
	case FaultLose:
		panic(http.ErrAbortHandler) // net/http's way to drop the connection
	}
	return false
}

// after does what is wrong after the entry, and says whether the request is over.
func (f Fault) after(w http.ResponseWriter, r *http.Request) bool {
	switch f {
	case FaultDrop:
		panic(http.ErrAbortHandler)
	case FaultError:
		fail(w, http.StatusInternalServerError, errors.New("internal error"))
		return true
	case FaultSilence:
		<-r.Context().Done()
		return true
	}
	return false
}
