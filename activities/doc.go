// Package activities holds everything of an agent turn that touches the world: asking a model, running
// a tool, and finding out what became of either.
//
// The workflows call these activities by the names in package agent and know nothing else of them. An
// activity owns no state: what it needs comes with its input, from the store, or from the worker's
// configuration as it stands now (a [Snapshot]). Every one of them may be killed at any moment and run
// again, also at the same time as an attempt of itself that was given up but is not dead; what makes
// that harmless are the records that the store creates only once (see [store.Space.CreateDispatch] and
// [store.Space.CreateResult]).
//
// An activity never decides what happens next in a turn, and never logs what was said in one. Errors
// that leave it are masked and at most 2 KiB long; their types are the Err constants of package agent.
package activities
