package worker

import (
	"os"
	"path/filepath"
)

// LoadWith is Load with an environment of the test's.
func LoadWith(path string, env map[string]string) (*Config, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, filepath.Dir(path), b, &references{lookup: func(name string) (string, bool) {
		s, ok := env[name]
		return s, ok
	}})
}
