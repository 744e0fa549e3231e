// Package store keeps what must outlive every process: the objects of a session in a bucket.
//
// A bucket is a gocloud.dev/blob bucket: s3://, gs:// and azblob:// in production, mem:// in tests, and
// file://, which is a driver of ours because the library's own one guards "create if absent" only inside
// one process and never syncs. Everything this package writes is either created if absent and never
// changed, or content-addressed, so that writing it again is harmless.
//
// Objects of a session lie under "<session>~<life>/<kind>/<name>" and are shared with no other session.
// Beside them the bucket holds "holdfast-store" (the identity of the store) and "payloads/" (oversized
// Temporal payloads). Every object is one line that names the algorithm, the key and a checksum, and then
// the bytes (envelope.go), so that encryption can come without moving anything.
//
// Three errors say something about an object: [ErrAbsent], [ErrDamaged] and [ErrSeal]. Every other error
// says that the store cannot be used now, and is worth trying again.
//
// With a seal configured, dispatch, result and closing records carry an HMAC and one without is never
// adopted. Without it whoever can write the bucket is trusted. A seal does not hide that a record was
// deleted.
//
// The package knows nothing of workflows, tools or policy, and must not.
package store
