package store

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// The test binary runs itself as several processes: childMode says as what, childDir in which folder.
const (
	childMode = "HOLDFAST_STORE_CHILD"
	childDir  = "HOLDFAST_STORE_DIR"
)

func TestMain(m *testing.M) {
	children := map[string]func(*Store) error{"race": childRace, "write": childWrite, "limit": childLimit}
	run, ok := children[os.Getenv(childMode)]
	if !ok {
		os.Exit(m.Run())
	}
	s, err := Open(context.Background(), Config{URL: "file://" + os.Getenv(childDir)})
	if err == nil {
		err = run(s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// child is this test binary as another process.
func child(t *testing.T, mode, dir string) (cmd *exec.Cmd, stdin io.WriteCloser, stdout *bufio.Scanner) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childMode+"="+mode, childDir+"="+dir)
	cmd.Stderr = os.Stderr
	stdin, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // does nothing to one that was waited for
	return cmd, stdin, bufio.NewScanner(out)
}

const raceNames = 150

// childRace creates every name as soon as it is told to, and prints which it won.
func childRace(s *Store) error {
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	for range 2 { // threads race too
		wg.Go(func() {
			for i := range raceNames {
				won, err := s.create(context.Background(), fmt.Sprintf("race/%d", i), []byte(strconv.Itoa(os.Getpid())))
				mu.Lock()
				failed = errors.Join(failed, err)
				if won {
					fmt.Println(i)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return failed
}

func TestOfProcessesThatCreateTheSameNameExactlyOneWins(t *testing.T) {
	t.Parallel()
	// On a busy machine the first process may be through before the others run.
	const rounds = 10
	for range rounds {
		if raced(t) {
			return
		}
	}
	t.Errorf("in %d rounds one process won everything: they did not race", rounds)
}

// raced lets processes create the same names and holds that each has one winner. It says whether more than one
// process won anything.
func raced(t *testing.T) bool {
	t.Helper()
	const processes = 5
	dir := t.TempDir()
	winner := make([]int, raceNames)
	var starts []io.Writer
	var outs []*bufio.Scanner
	var cmds []*exec.Cmd
	for range processes {
		cmd, in, out := child(t, "race", dir)
		if !out.Scan() || out.Text() != "ready" {
			t.Fatalf("a child did not get ready: %q", out.Text())
		}
		starts, outs, cmds = append(starts, in), append(outs, out), append(cmds, cmd)
	}
	for _, in := range starts {
		if _, err := in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
	}
	both := 0 // processes that won any
	for i, out := range outs {
		wins := 0
		for out.Scan() {
			n, err := strconv.Atoi(out.Text())
			if err != nil {
				t.Fatal(err)
			}
			if winner[n] != 0 {
				t.Errorf("name %d has two winners", n)
			}
			winner[n] = cmds[i].Process.Pid
			wins++
		}
		if err := cmds[i].Wait(); err != nil {
			t.Error(err)
		}
		if wins > 0 {
			both++
		}
	}
	s := openDir(t, dir)
	for n, pid := range winner {
		got, err := s.read(context.Background(), fmt.Sprintf("race/%d", n))
		if err != nil || string(got) != strconv.Itoa(pid) {
			t.Errorf("name %d holds %q, its winner wrote %d; %v", n, got, pid, err)
		}
	}
	return both > 1
}

// contentOf is what the killed process writes under a name: long enough to be caught half-way.
func contentOf(name string) []byte { return bytes.Repeat([]byte(name+"\n"), 3000) }

// childWrite creates objects until it is killed, and prints each name once it was acknowledged.
func childWrite(s *Store) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				name := fmt.Sprintf("kill/%d-%d-%d", os.Getpid(), w, i)
				if created, err := s.create(context.Background(), name, contentOf(name)); err != nil || !created {
					panic(fmt.Sprint(created, err))
				}
				mu.Lock()
				fmt.Println(name)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return nil
}

func TestAnAcknowledgedWriteSurvivesSIGKILLAndNoneIsHalfThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	acknowledged := map[string]bool{}
	for range 8 {
		cmd, _, out := child(t, "write", dir)
		for range 1 + rand.IntN(60) {
			if !out.Scan() {
				t.Fatal("the child stopped by itself")
			}
			acknowledged[out.Text()] = true
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for out.Scan() { // what it had printed before it died
			if strings.HasPrefix(out.Text(), "kill/") {
				acknowledged[out.Text()] = true
			}
		}
		if err := cmd.Wait(); err == nil {
			t.Fatal("the child was not killed")
		}
	}
	s := openDir(t, dir)
	names, err := s.list(context.Background(), "kill/")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		got, err := s.read(context.Background(), name)
		if err != nil || !bytes.Equal(got, contentOf(name)) {
			t.Errorf("%q is there and not whole: %v", name, err)
		}
		delete(acknowledged, name)
	}
	for name := range acknowledged {
		t.Errorf("%q was acknowledged and is not there", name)
	}
}

// childLimit works under a limit on the size of files: what a quota or a full disk does to a write.
func childLimit(s *Store) error {
	signal.Ignore(syscall.SIGXFSZ)
	limit := syscall.Rlimit{Cur: 8 << 10, Max: 8 << 10}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	created, err := s.create(context.Background(), "limit/large", make([]byte, 64<<10))
	if created || !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "is full") {
		return fmt.Errorf("a write beyond the limit: %v, %w", created, err)
	}
	if created, err = s.create(context.Background(), "limit/small", []byte("small")); err != nil || !created {
		return fmt.Errorf("a write within the limit: %v, %w", created, err)
	}
	return nil
}

func TestAWriteThatDoesNotFitLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, _, _ := child(t, "limit", dir)
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	names, err := openDir(t, dir).list(context.Background(), "limit/")
	if err != nil || len(names) != 1 || names[0] != "limit/small" {
		t.Errorf("there is %q, %v", names, err)
	}
	files, err := os.ReadDir(dir + "/limit")
	if err != nil || len(files) != 1 {
		t.Errorf("files %v, %v", files, err)
	}
}
