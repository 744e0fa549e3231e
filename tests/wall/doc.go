// Package wall tests the import graph: imports run downwards, storey by storey, and no package that runs
// inside a workflow can reach I/O.
//
// golangci-lint's depguard says the same at the line where an import stands; this test also sees what
// is reached through other packages, and cannot be switched off by a comment.
package wall
