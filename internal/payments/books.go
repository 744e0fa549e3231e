package payments

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// An Entry is one refund that was made, or one that was taken back. It is on disk before anybody is told of it.
type Entry struct {
	Refund string    `json:"refund"` // the service's own number for it
	Key    string    `json:"key"`
	Order  string    `json:"order"`
	Amount Amount    `json:"amount"`
	At     time.Time `json:"at"`
	// Voids is the number of the refund that this entry takes back.
	Voids string `json:"voids,omitempty"`
}

// same says whether two entries are of the same request.
func (e Entry) same(f Entry) bool {
	return e.Order == f.Order && e.Amount == f.Amount && e.Voids == f.Voids
}

// books is an append-only file of entries, one JSON object a line. Safe for concurrent use.
type books struct {
	mu      sync.Mutex
	file    *os.File
	size    int64 // bytes of the file that hold whole entries
	entries []Entry
	broken  error // a failed write that could not be taken back
}

// openBooks reads what is there and takes back a last line that a crash cut off: nobody was told of it.
func openBooks(path string) (*books, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("books: %w", err)
	}
	b := &books{file: f}
	if err := errors.Join(b.load(), syncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return b, nil
}

func (b *books) load() error {
	r := bufio.NewReader(b.file)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return b.cut()
		}
		if err != nil {
			return fmt.Errorf("books %q: %w", b.file.Name(), err)
		}
		var e Entry
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil {
			return fmt.Errorf("books %q: entry %d is damaged: %w; restore the file from a copy", b.file.Name(), len(b.entries)+1, err)
		}
		b.entries = append(b.entries, e)
		b.size += int64(len(line))
	}
}

// cut drops whatever stands after the last whole entry, so that the next write goes there.
func (b *books) cut() error {
	if err := b.file.Truncate(b.size); err != nil {
		return fmt.Errorf("books %q: %w", b.file.Name(), err)
	}
	return nil
}

// alone says whether nobody else has written to the file: an entry of another service, which this one knows nothing of,
// would be a refund that neither its keys nor its answers know.
func (b *books) alone() error {
	info, err := b.file.Stat()
	if err != nil {
		return fmt.Errorf("books: %w", err)
	}
	if info.Size() != b.size {
		return fmt.Errorf("books %q: another service writes to them; give each a file of its own", b.file.Name())
	}
	return nil
}

// find returns the entry made under a key.
func (b *books) find(key string) (Entry, bool) {
	for _, e := range b.entries {
		if e.Key == key {
			return e, true
		}
	}
	return Entry{}, false
}

// enter makes one entry, or returns the standing one when there is one under the key and distinct is not
// set. It gives the entry its number and its time. The entry is durable when enter returns.
func (b *books) enter(e Entry, distinct bool) (_ Entry, made bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if standing, found := b.find(e.Key); found && !distinct {
		return standing, false, nil
	}
	if b.broken != nil {
		return Entry{}, false, b.broken
	}
	if err := b.alone(); err != nil {
		return Entry{}, false, err
	}
	kind := "re"
	if e.Voids != "" {
		kind = "vo"
	}
	e.Refund, e.At = fmt.Sprintf("%s_%d", kind, len(b.entries)+1), time.Now().UTC()
	if err := b.write(e); err != nil {
		// Half a line would glue itself to the next entry.
		b.broken = b.cut()
		return Entry{}, false, err
	}
	b.entries = append(b.entries, e)
	return e, true, nil
}

func (b *books) write(e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("books: %w", err)
	}
	line = append(line, '\n')
	if _, err := b.file.Write(line); err != nil {
		return fmt.Errorf("books: %w", err)
	}
	if err := b.file.Sync(); err != nil {
		return fmt.Errorf("books: %w", err)
	}
	b.size += int64(len(line))
	return nil
}

func (b *books) all() []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]Entry{}, b.entries...)
}

// syncDir makes a created file's name durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("books: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
