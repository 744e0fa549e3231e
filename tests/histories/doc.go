// Package histories holds recorded histories of each kind of run and of each release, and replays them all with
// the workflow code of this build.
//
// They are the runs that a deploy will meet: one that does not replay here would be stuck there. "make
// histories" records what is missing for the release, on the real Temporal server with the real worker, a
// scripted model and a payments service with books. It never touches a file that is there: a history is what
// happened, and one that was edited proves nothing. A change of the workflows that old histories cannot
// replay goes through package versioning.
//
// A release's folder is final when the release is made: until then its files may be deleted and recorded anew.
package histories
