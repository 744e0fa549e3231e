package transcript

import (
	"reflect"

	"github.com/google/go-cmp/cmp/cmpopts"
)

var cmpEmpty = cmpopts.EquateEmpty()

// sameEntries compares long conversations, for which cmp is slow.
func sameEntries(a, b []Entry) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }
