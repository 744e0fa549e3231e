package docs

import (
	"bytes"
	"os"
	"testing"

	"github.com/holdfast-run/holdfast/internal/failpoint"
)

// CONTRIBUTING.md says that failpoints exist only in builds with the tag.
func TestAReleaseHoldsNoFailpoints(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(program(t, "."))
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"HOLDFAST_FAILPOINT"}
	for _, p := range failpoint.Points() {
		words = append(words, p.Name)
	}
	for _, w := range words {
		if bytes.Contains(b, []byte(w)) {
			t.Errorf("a binary that was built without the tag holds %q", w)
		}
	}
}
