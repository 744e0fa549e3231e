package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal starts a demo on a terminal of its own and returns the side where the person sits.
func terminal(t *testing.T) (*run, io.Writer) {
	t.Helper()
	person, line := pty(t)
	r := prepare(t, nil)
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = line, line, line
	r.heard = make(chan struct{})
	r.begin()
	if err := line.Close(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.heard)
		_, _ = io.Copy(r.out, person) // ends with EIO when nobody has the other side any more
	}()
	return r, person
}

// pty returns both sides of a new terminal.
func pty(t *testing.T) (person, line *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	line, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return person, line
}

const question = "Approve this? [y/N] "

func TestOnATerminalThePersonApproves(t *testing.T) {
	t.Parallel()
	r, person := terminal(t)
	r.says(question)
	fmt.Fprintln(person, "y")
	if code := r.ends(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, r.out)
	}
	r.inOrder(good)
	r.inOrder([]string{`Approve this\?`, `accepted: approved by you`, `approved by you, signed`})
	r.cleanFolder()
	r.nobodyLeft()
}

func TestWhatThePersonDeclinesIsNotRefundedAndEndsWell(t *testing.T) {
	t.Parallel()
	r, person := terminal(t)
	r.says(question)
	fmt.Fprintln(person)
	if code := r.ends(); code != 0 {
		t.Fatalf("exit code %d:\n%s", code, r.out)
	}
	r.inOrder([]string{
		`Approve this\?`, `accepted: declined by you`, `agent +I could not refund order 42: it was not approved`,
		`The books: 0 refunds`, `refund 19\.90 42: declined`, `You declined: nothing was sent`,
	})
	r.cleanFolder()
	r.nobodyLeft()
}

func TestCtrlCAtTheQuestionLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	r, _ := terminal(t)
	r.says(question)
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := r.ends(); code != 130 {
		t.Errorf("exit code %d, want 130:\n%s", code, r.out)
	}
	r.cleanFolder()
	r.nobodyLeft()
}
