package deploy

import (
	"github.com/holdfast-run/holdfast/versioning"
	"github.com/holdfast-run/holdfast/worker"
)

// Is says whether a build is the program whose own build id is given.
func (b Build) Is(binary string) bool {
	return b.ID == binary || b.Table != nil && b.Table.Binary == binary
}

// A Gap is a change number that new runs of one build take and that another build does not understand.
type Gap struct {
	Type   string `json:"type"`
	Number int    `json:"number"`
	Oldest int    `json:"oldest"` // what the other understands
	Newest int    `json:"newest"`
}

// gaps returns what new runs of a build take and another does not understand. Where one of them says nothing of
// itself, nothing is known.
func gaps(of, other *worker.Table) []Gap {
	if of == nil || other == nil {
		return nil
	}
	var out []Gap
	for _, kind := range versioning.Types() {
		n, o := of.Numbers[kind], other.Numbers[kind]
		if n.Preferred != 0 && o.Newest != 0 && !o.Understands(n.Preferred) {
			out = append(out, Gap{Type: kind, Number: n.Preferred, Oldest: o.Oldest, Newest: o.Newest})
		}
	}
	return out
}
