// Package versioning carries running workflows across deploys: the table of change numbers, the one place
// that calls workflow.GetVersion, and the checkpoints that continue-as-new carries.
//
// There is one change id per workflow type, whose number rises; a run reads it once, at its start, because
// a first GetVersion inside the loop of a live run is remembered as "old" for the whole run. A change ships
// in two releases: the first understands the new number, the second prefers it.
package versioning
