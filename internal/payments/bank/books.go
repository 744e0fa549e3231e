package bank

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// A Transfer is a line of the books: one request that the bank took, and whether it made an entry.
type Transfer struct {
	Tool   string    `json:"tool"`
	Key    string    `json:"key"` // as it was sent, also to a tool that does not honour it
	Order  string    `json:"order"`
	Amount string    `json:"amount"`
	At     time.Time `json:"at"`
	// Made says that this request made an entry: that of keyed, the first under its key. It follows from the lines
	// before.
	Made bool `json:"made"`
}

// Read returns every request of the books at path, oldest first; none when there are no books yet.
func Read(path string) ([]Transfer, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("bank: %w", err)
	}
	var all []Transfer
	used := map[string]bool{}
	for line := range strings.Lines(string(b)) {
		var t Transfer
		if json.Unmarshal([]byte(line), &t) != nil {
			continue // the line break before a request, or what is left of one that a death has cut
		}
		t.Made = t.Tool != Keyed || !used[t.Key]
		if t.Tool == Keyed {
			used[t.Key] = true
		}
		all = append(all, t)
	}
	return all, nil
}

// write appends a request. Several processes may do so at a time, and may die of it: one write is all of a request, and
// it begins with a line break, so that half a line of one that died spoils nothing but itself.
func write(path string, t Transfer) error {
	t.At = time.Now().UTC()
	b, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("bank: %w", err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("bank: %w", err)
	}
	_, err = f.WriteString("\n" + string(b) + "\n")
	return errors.Join(err, f.Sync(), f.Close())
}
