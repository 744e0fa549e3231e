package starter

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// maxPassphrase bounds what is read for a passphrase, in bytes.
const maxPassphrase = 1024

// askPassphrase asks the person at the terminal, whatever stdin is, and shows nothing of the answer.
func askPassphrase(ctx context.Context, path string) (secret []byte, err error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errors.New("there is no terminal to ask for it; give the key to the ssh-agent with ssh-add and use its .pub file")
	}
	defer func() { _ = tty.Close() }()
	restore, err := silence(int(tty.Fd()))
	if err != nil {
		return nil, fmt.Errorf("the terminal: %w", err)
	}
	defer func() {
		err = errors.Join(err, restore())
		fmt.Fprintln(tty)
	}()
	fmt.Fprintf(tty, "Passphrase of %s: ", line(path, 200))
	text, err := readAnswer(ctx, tty, maxPassphrase)
	if err == nil && text == "" {
		err = errors.New("no passphrase was given")
	}
	return []byte(text), err
}

// silence has a terminal show nothing of what is typed until restore is called.
func silence(fd int) (restore func() error, err error) {
	before, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil, err
	}
	silent := *before
	silent.Lflag &^= unix.ECHO
	silent.Lflag |= unix.ICANON | unix.ISIG
	if err := unix.IoctlSetTermios(fd, setTermios, &silent); err != nil {
		return nil, err
	}
	return func() error { return unix.IoctlSetTermios(fd, setTermios, before) }, nil
}

// readAnswer reads a line of at most so many bytes without its end. A read from a terminal cannot be
// interrupted; when ctx ends it is left behind, which is for programs that end then.
func readAnswer(ctx context.Context, r io.Reader, limit int64) (string, error) {
	type answer struct {
		text string
		err  error
	}
	read := make(chan answer, 1)
	go func() {
		s := bufio.NewScanner(io.LimitReader(r, limit))
		s.Scan()
		read <- answer{s.Text(), s.Err()}
	}()
	select {
	case a := <-read:
		return a.text, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
