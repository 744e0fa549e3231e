package store

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gocloud.dev/blob/driver"

	"github.com/holdfast-run/holdfast/agent"
)

func TestTheIdentityIsDrawnOnceAndStays(t *testing.T) {
	t.Parallel()
	url := "file://" + filepath.Join(t.TempDir(), "new", "store")
	var mu sync.Mutex
	ids := map[string]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := Open(context.Background(), Config{URL: url})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[s.ID()] = true
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	again := openURL(t, Config{URL: url}).ID()
	if len(ids) != 1 || !ids[again] || len(again) != 12 || strings.Trim(again, "0123456789abcdef") != "" {
		t.Errorf("identities %v, then %q", ids, again)
	}
	if other := openDir(t, t.TempDir()).ID(); other == again {
		t.Error("two stores have one identity")
	}
}

func TestADamagedIdentityIsNotReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openDir(t, dir)
	for _, bad := range [][]byte{{}, []byte("0123456789ab\n"), wrap([]byte("0123456789AB\n")), wrap([]byte("x"))} {
		if err := os.WriteFile(filepath.Join(dir, identity), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(context.Background(), Config{URL: s.url}); !errors.Is(err, ErrDamaged) {
			t.Errorf("identity %q: %v", bad, err)
		}
	}
}

func TestURLsThatNameNoStoreAreRefused(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{
		"", "x", "/tmp/x", "file://", "file:///", "file://host/x", "file://./", "file:///x?y=z", "ftp://x/y", "://",
		"s3://user:secret@", "file://" + file, "file://" + file + "/below",
	} {
		s, err := Open(context.Background(), Config{URL: url})
		if err == nil {
			t.Errorf("%q opened as %q", url, s.url)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error shows a secret: %v", url, err)
		}
	}
}

func TestARelativeURLIsBelowTheWorkingFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	s := openURL(t, Config{URL: "file://./data/store"})
	if err := s.Prove(context.Background()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join("data", "store", identity)); err != nil {
		t.Error(err)
	}
}

func TestBodiesAreCheckedMendedAndApart(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"mem": "mem://", "file": "file://" + t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			s := openURL(t, Config{URL: url, Seal: []byte("k")})
			space := s.Space(scope)
			for _, content := range [][]byte{nil, []byte("x"), bytes.Repeat([]byte("0123456789"), 300_000)} {
				body, err := space.PutBody(ctx, content, "image/png")
				again, err2 := space.PutBody(ctx, content, "image/png")
				if err != nil || err2 != nil || body != again || body.Size != int64(len(content)) || body.Type != "image/png" {
					t.Fatalf("%+v, %+v, %v, %v", body, again, err, err2)
				}
				if got, err := space.Body(ctx, body); err != nil || !bytes.Equal(got, content) {
					t.Fatalf("%d bytes: %v", len(got), err)
				}
				if _, err := s.Space(agent.NewScope("s", "later")).Body(ctx, body); !errors.Is(err, ErrAbsent) {
					t.Errorf("another life: %v", err)
				}
				object := scope.String() + "/bodies/" + string(body.Digest)
				for _, bad := range [][]byte{{}, []byte("noise"), wrap([]byte("another"))} {
					if err := s.bucket.WriteAll(ctx, object, bad, nil); err != nil {
						t.Fatal(err)
					}
					if got, err := space.Body(ctx, body); !errors.Is(err, ErrDamaged) {
						t.Errorf("damaged to %q: %q, %v", bad, got, err)
					}
					if _, err := space.PutBody(ctx, content, "image/png"); err != nil {
						t.Error(err)
					}
					if got, err := space.Body(ctx, body); err != nil || !bytes.Equal(got, content) {
						t.Errorf("not mended: %v", err)
					}
				}
			}
			if _, err := space.Body(ctx, agent.Body{Digest: "../../x"}); !errors.Is(err, ErrAbsent) {
				t.Error(err)
			}
		})
	}
}

func TestNamesThatNameNothingAreRefused(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := openURL(t, Config{URL: "mem://"})
	good := s.Space(scope)
	bad := s.Space(agent.Scope{Session: "../..", Life: "00000000"})
	_, _, err1 := good.Create(ctx, "other", "x", nil)
	_, _, err2 := good.Create(ctx, KindIntents, "", nil)
	_, _, err3 := good.Create(ctx, KindIntents, strings.Repeat("x", MaxName+1), nil)
	_, _, err4 := bad.Create(ctx, KindIntents, "x", nil)
	_, err5 := bad.List(ctx, KindIntents, "")
	_, err6 := bad.Get(ctx, KindIntents, "x")
	err7 := good.Mend(ctx, KindResults, "x", nil)
	for i, err := range []error{err1, err2, err3, err4, err5, err6, err7} {
		if err == nil {
			t.Errorf("%d was taken", i+1)
		}
	}
	long := strings.Repeat("k", agent.MaxKey)
	if created, _, err := good.Create(ctx, KindIntents, long, nil); err != nil || !created {
		t.Errorf("the longest key: %v", err)
	}
}

func TestABucketThatIsProvedIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]string{"mem": "mem://", "file": "file://" + t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			s := openURL(t, Config{URL: url})
			if err := s.Prove(context.Background()); err != nil {
				t.Error(err)
			}
			if names, err := s.list(context.Background(), ""); err != nil || len(names) != 1 {
				t.Errorf("%q, %v", names, err)
			}
		})
	}
}

func TestABucketThatDoesNotKeepIfAbsentIsFoundOut(t *testing.T) {
	t.Parallel()
	always := func(_ string, o *driver.WriterOptions) error {
		o.IfNotExist = false
		return nil
	}
	var arrived sync.WaitGroup
	arrived.Add(provers)
	checkedBefore := func(key string, o *driver.WriterOptions) error {
		// A bucket that looks first and writes then: all racers have looked before one writes.
		if strings.HasSuffix(key, "-race") {
			o.IfNotExist = false
			arrived.Done()
			arrived.Wait()
		}
		return nil
	}
	for name, before := range map[string]func(string, *driver.WriterOptions) error{"overwrites": always, "races": checkedBefore} {
		t.Run(name, func(t *testing.T) {
			s, f := newFaulty(t)
			f.before = before
			if err := s.Prove(context.Background()); err == nil || !strings.Contains(err.Error(), "cannot keep an effect from being sent twice") {
				t.Errorf("proved: %v", err)
			}
		})
	}
}
