package naive

import (
	"fmt"
	"strings"

	"github.com/holdfast-run/holdfast/tests/chaos/cell"
)

// disturb does what goes wrong beside the places, but for the model's storms, which are part of its script.
func (d *drive) disturb() error {
	for _, f := range d.blows {
		if f.At != "" {
			continue
		}
		if err := d.world.Disturb(f.Fault); err != nil {
			return fmt.Errorf("%s %s: %w", f.Kind, f.Arg, err)
		}
	}
	return nil
}

// felt says whether somebody met a fault beside the places. The loop sends again whatever it had no answer to.
func (d *drive) felt(f cell.Fault) bool {
	requests := 0
	for _, n := range d.world.Pay.Books().Requests {
		requests += n
	}
	switch where, _, _ := strings.Cut(f.Arg, " "); {
	case f.Kind == cell.Link:
		return d.world.Link(where).Hits() > 0
	case f.Kind == cell.Storm && where == "model":
		return d.world.Model.Count() >= d.scene.Answers+f.Nth
	case f.Kind == cell.Storm, f.Kind == cell.Lost:
		return requests >= d.scene.Payments+f.Nth
	}
	return true
}
