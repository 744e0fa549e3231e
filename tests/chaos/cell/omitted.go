package cell

// An Omission is what the table leaves out, and why. Each pattern is a list of alternatives, separated by commas, in which
// * stands for anything; an empty one is any. A boundary is a place of package failpoint or "none", for what has no place;
// a fault is its kind with its argument: "storm model 429 seconds".
type Omission struct {
	Boundary, Fault, Destination string
	Why                          string
}

// LeftOut returns everything that is left out.
func LeftOut() []Omission { return nil }
