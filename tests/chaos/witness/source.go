package witness

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/client"
)

// A Source is where the story of one session is heard.
type Source struct {
	Client    client.Client
	Namespace string // empty is Temporal's default one
	Session   string // its workflow id
	Turns     int    // how many turns the session is to have had in the end
	// Store is the URL, or the folder, of the workers' store. It is only read.
	Store string
	Books func() ([]Entry, error) // the destination's record, in order
	// Requests counts the requests that the destination had for each key; nil where it does not count.
	Requests func() map[string]int
	Charges  func() int // answers that the model server charged for
	// Patience bounds how long Collect waits for the session to come to rest; 0 is half a minute.
	Patience time.Duration
}

// Collect hears every witness of a run that is over. It waits until the session is at rest, for which a worker has to
// live, and says in Story.Stuck what did not come to rest. Shown, Unlisted, Damaged and Calm are the caller's to add.
func Collect(ctx context.Context, src Source) (Story, error) {
	return Story{}, errors.ErrUnsupported
}

// Turns reads all turns as they stand, those that have ended first of all from their histories and the store: no worker
// is needed. The turn of number n is at n-1; late compensations come last.
func Turns(ctx context.Context, src Source) ([]Turn, error) {
	return nil, errors.ErrUnsupported
}
