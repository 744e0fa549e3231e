// Package signature makes and checks the SSH signatures by which people prove what they say: SSHSIG, the form
// that "ssh-keygen -Y sign" writes, in the namespace "holdfast-approval".
//
// It knows bytes and keys only. Which bytes a statement has is package approval's; whose key it is, and what its
// owner may do, is policy's. Verify and ParseKey take foreign bytes; Signer reads a key file or speaks to an
// ssh-agent, and is for the command line.
package signature
