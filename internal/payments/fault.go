package payments

import (
	"errors"
	"net/http"
	"time"
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

// The faults of a service with too much to do: it answers 429 or 503 and says when to come again, in seconds
// (Retry-After: 1) or as an HTTP date, which is one to two seconds ahead, since it has no fractions. Those that begin
// with "entered" have entered before they answer so, the others enter nothing; the caller cannot know which it was.
const (
	Fault429Seconds        Fault = "429 seconds"
	Fault429Date           Fault = "429 date"
	Fault503Seconds        Fault = "503 seconds"
	Fault503Date           Fault = "503 date"
	FaultEntered429Seconds Fault = "entered 429 seconds"
	FaultEntered429Date    Fault = "entered 429 date"
	FaultEntered503Seconds Fault = "entered 503 seconds"
	FaultEntered503Date    Fault = "entered 503 date"
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
	return f.putOff(w, false)
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
	return f.putOff(w, true)
}

// putOffs are the faults that say when to come again.
var putOffs = map[Fault]struct {
	status        int
	date, entered bool
}{
	Fault429Seconds:        {http.StatusTooManyRequests, false, false},
	Fault429Date:           {http.StatusTooManyRequests, true, false},
	Fault503Seconds:        {http.StatusServiceUnavailable, false, false},
	Fault503Date:           {http.StatusServiceUnavailable, true, false},
	FaultEntered429Seconds: {http.StatusTooManyRequests, false, true},
	FaultEntered429Date:    {http.StatusTooManyRequests, true, true},
	FaultEntered503Seconds: {http.StatusServiceUnavailable, false, true},
	FaultEntered503Date:    {http.StatusServiceUnavailable, true, true},
}

// putOff says when to come again, if the fault is one that does so at this moment.
func (f Fault) putOff(w http.ResponseWriter, entered bool) bool {
	p, ok := putOffs[f]
	if !ok || p.entered != entered {
		return false
	}
	again := "1"
	if p.date {
		again = time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat)
	}
	w.Header().Set("Retry-After", again)
	fail(w, p.status, errors.New("too much to do: come again"))
	return true
}
