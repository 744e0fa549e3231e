// Package tmpdeps keeps dependencies in go.mod until their first user is here.
package tmpdeps

import (
	_ "cel.dev/cel-go/cel"
	_ "github.com/hiddeco/sshsig"
	_ "golang.org/x/crypto/ssh"
	_ "golang.org/x/crypto/ssh/agent"
)
