// Package naive is the agent loop that everybody writes first, on the same server: activities with Temporal's default
// retries, no keys, no records, an approval that is a signal with a boolean. It is here so that a reader sees what the
// promise is worth.
package naive
