// Package tooling tests the scripts of tools/ that decide something.
package tooling
