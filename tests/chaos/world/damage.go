package world

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Damage damages the newest object of a kind in the store and returns its path. How is missing, flipped (one bit of
// its bytes) or truncated (half of them are gone).
func (w *World) Damage(kind, how string) (path string, err error) {
	if path, err = w.newest(kind); err != nil {
		return "", err
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	// The first line is the envelope's; what is behind it is the object.
	start := bytes.IndexByte(b, '\n') + 1
	switch middle := (start + len(b)) / 2; how {
	case "missing":
		return path, os.Remove(path)
	case "flipped":
		b[middle] ^= 1
	case "truncated":
		b = b[:middle]
	default:
		return "", fmt.Errorf("%q is no damage: want missing, flipped or truncated", how)
	}
	return path, os.WriteFile(path, b, 0o600)
}

// newest returns the object of a kind that was written last.
func (w *World) newest(kind string) (path string, err error) {
	folders, err := filepath.Glob(filepath.Join(w.Store(), w.Session+"~*", kind))
	if err != nil {
		return "", err
	}
	var last time.Time
	for _, dir := range folders {
		files, err := os.ReadDir(dir)
		if err != nil {
			return "", err
		}
		for _, f := range files {
			info, err := f.Info()
			if err != nil || strings.HasPrefix(f.Name(), ".") {
				continue // a temporary file, perhaps gone by now
			}
			if info.ModTime().After(last) {
				path, last = filepath.Join(dir, f.Name()), info.ModTime()
			}
		}
	}
	if path == "" {
		return "", fmt.Errorf("the store of %s has no %s", w.Session, kind)
	}
	return path, nil
}
