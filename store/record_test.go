package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

const key = "s~0a1b2c3d:turn-1/2.3/0123456789abcdef"

func dispatch(token string) Dispatch {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678, time.UTC)
	return Dispatch{
		Key: key, Attempt: 2, Token: token, Class: agent.ClassOnce, Action: agent.DigestOf([]byte("a")),
		Verdict: agent.Verdict{Decision: agent.DecisionAllow, Rule: "listed", Policy: "p"}, At: at, SendBy: at.Add(time.Minute),
	}
}

func results() map[string]Result {
	return map[string]Result{
		"tool": {Key: key, Tool: &agent.ToolResult{State: agent.StateCommitted, Text: "<paid> \u2028 \"1e400\"", Attempt: 2}},
		"model": {Key: key, Model: &ModelRecord{
			Result: agent.ModelResult{
				Head: agent.Head{Seq: 3, Hash: agent.DigestOf(nil)}, Text: "hi",
				Calls: []agent.Call{{ID: "c", Tool: "pay", Args: `{"amount":12345678901234567890.10}`}},
			},
			Prompt: agent.DigestOf([]byte("p")),
		}},
	}
}

// eachSeal runs a test with and without a seal, in memory and in files.
func eachSeal(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Parallel()
	for _, seal := range []string{"", "a seal key"} {
		for name, url := range map[string]string{"mem": "mem://", "file": "file://" + t.TempDir()} {
			t.Run(fmt.Sprintf("%s seal %t", name, seal != ""), func(t *testing.T) {
				test(t, openURL(t, Config{URL: url, Seal: []byte(seal)}))
			})
		}
	}
}

func TestTheFirstRecordStandsAndComesBackAsWritten(t *testing.T) {
	eachSeal(t, func(t *testing.T, s *Store) {
		ctx, space := context.Background(), s.Space(scope)
		if _, err := space.Dispatch(ctx, key); !errors.Is(err, ErrAbsent) {
			t.Error(err)
		}
		mine, other := dispatch("mine"), dispatch("other")
		other.Attempt, other.Revoked = 3, true
		for i, want := range []struct {
			d     Dispatch
			first bool
		}{{mine, true}, {other, false}, {mine, true}} {
			first, standing, err := space.CreateDispatch(ctx, want.d)
			if err != nil || first != want.first || !cmp.Equal(standing, mine) {
				t.Errorf("create %d: first %v, %+v, %v", i, first, standing, err)
			}
		}
		if got, err := space.Dispatch(ctx, key); err != nil || !cmp.Equal(got, mine) {
			t.Errorf("%+v, %v", got, err)
		}
		for name, r := range results() {
			r.Key += name
			if _, err := space.Result(ctx, r.Key); !errors.Is(err, ErrAbsent) {
				t.Error(err)
			}
			loser := Result{Key: r.Key, Tool: &agent.ToolResult{State: agent.StateFailed}}
			for i, want := range []struct {
				r     Result
				first bool
			}{{r, true}, {loser, false}, {r, true}} {
				first, standing, err := space.CreateResult(ctx, want.r)
				if err != nil || first != want.first || !cmp.Equal(standing, r) {
					t.Errorf("%s %d: first %v, %v\n%s", name, i, first, err, cmp.Diff(r, standing))
				}
			}
			if got, err := space.Result(ctx, r.Key); err != nil || !cmp.Equal(got, r) {
				t.Errorf("%s: %v\n%s", name, err, cmp.Diff(r, got))
			}
		}
		if names, err := space.List(ctx, KindDispatches, "s~0a1b2c3d:turn-1/"); err != nil || !cmp.Equal(names, []string{key}) {
			t.Errorf("listed %q, %v", names, err)
		}
	})
}

func TestTheFirstClosingStands(t *testing.T) {
	eachSeal(t, func(t *testing.T, s *Store) {
		ctx, space := context.Background(), s.Space(scope)
		one, two := []byte(`{"n":1}`+sealMark+"-"), []byte(`{"n":2}`)
		for _, b := range [][]byte{one, two, one} {
			if d, err := space.CreateClosing(ctx, ClosingName(7, 0), b); err != nil || d != agent.DigestOf(one) {
				t.Errorf("%s, %v", d, err)
			}
		}
		if got, err := space.Closing(ctx, ClosingName(7, 0)); err != nil || string(got) != string(one) {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := space.Closing(ctx, ClosingName(7, 1)); !errors.Is(err, ErrAbsent) {
			t.Error(err)
		}
	})
}

func TestOfManyDispatchesExactlyOneIsFirst(t *testing.T) {
	eachSeal(t, func(t *testing.T, s *Store) {
		var mu sync.Mutex
		var wg sync.WaitGroup
		var firsts []string
		standing := map[string]bool{}
		for i := range 16 {
			wg.Go(func() {
				d := dispatch(fmt.Sprint(i))
				first, got, err := s.Space(scope).CreateDispatch(context.Background(), d)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				if first {
					firsts = append(firsts, d.Token)
				}
				standing[got.Token] = true
			})
		}
		wg.Wait()
		if len(firsts) != 1 || len(standing) != 1 || !standing[firsts[0]] {
			t.Errorf("first %v, standing %v", firsts, standing)
		}
	})
}

func TestAnAttemptKnowsItsRecordAfterALostAnswer(t *testing.T) {
	t.Parallel()
	s, f := newFaulty(t)
	ctx, space := context.Background(), s.Space(scope)
	f.after = func(string, error) error { return errors.New("connection reset") }
	first, standing, err := space.CreateDispatch(ctx, dispatch("mine"))
	if err != nil || !first || standing.Token != "mine" {
		t.Errorf("own record: %v, %+v, %v", first, standing, err)
	}
	first, _, err = space.CreateDispatch(ctx, dispatch("other"))
	if usable(t, err); first {
		t.Error("another's record was taken for its own")
	}
}

func TestASealIsBoundToKeyKindSessionAndBytes(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	dir := t.TempDir()
	sealed := openURL(t, Config{URL: "file://" + dir, Seal: []byte("k")})
	plain := openURL(t, Config{URL: "file://" + dir})
	wrong := openURL(t, Config{URL: "file://" + dir, Seal: []byte("another")})
	space := sealed.Space(scope)
	if _, _, err := space.CreateDispatch(ctx, dispatch("t")); err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.Space(scope).Dispatch(ctx, key); !errors.Is(err, ErrSeal) {
		t.Errorf("another key: %v", err)
	}
	if _, _, err := wrong.Space(scope).CreateDispatch(ctx, dispatch("t")); !errors.Is(err, ErrSeal) {
		t.Errorf("a record with a wrong seal was adopted: %v", err)
	}
	if d, err := plain.Space(scope).Dispatch(ctx, key); err != nil || d.Token != "t" {
		t.Errorf("without a key a seal is not looked at: %v", err)
	}
	object := scope.String() + "/dispatches/" + escapeName(key)
	record, err := sealed.read(ctx, object)
	if err != nil {
		t.Fatal(err)
	}
	other := agent.NewScope("s", "later")
	forged := []byte(strings.Replace(string(record), `"attempt":2`, `"attempt":3`, 1))
	for name, c := range map[string]struct {
		object string
		bytes  []byte
		get    func() error
	}{
		"bytes": {object, forged, func() error { _, err := space.Dispatch(ctx, key); return err }},
		"session": {
			other.String() + "/dispatches/" + escapeName(key), record,
			func() error { _, err := sealed.Space(other).Dispatch(ctx, key); return err },
		},
		"kind": {
			scope.String() + "/results/" + escapeName(key), record,
			func() error { _, err := space.Result(ctx, key); return err },
		},
		"key": {
			scope.String() + "/dispatches/k2", record,
			func() error { _, err := space.Dispatch(ctx, "k2"); return err },
		},
	} {
		if err := sealed.replace(ctx, c.object, c.bytes); err != nil {
			t.Fatal(err)
		}
		if err := c.get(); !errors.Is(err, ErrSeal) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if _, _, err := plain.Space(scope).CreateResult(ctx, Result{Key: "p", Tool: &agent.ToolResult{}}); err != nil {
		t.Fatal(err)
	}
	first, _, err := space.CreateResult(ctx, Result{Key: "p", Tool: &agent.ToolResult{}})
	if first || !errors.Is(err, ErrSeal) {
		t.Errorf("a record without a seal was adopted: %v, %v", first, err)
	}
	if _, err := plain.Space(scope).CreateClosing(ctx, ClosingName(1, 0), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := space.Closing(ctx, ClosingName(1, 0)); !errors.Is(err, ErrSeal) {
		t.Error(err)
	}
}

func TestADamagedRecordIsNeverAdopted(t *testing.T) {
	eachSeal(t, func(t *testing.T, s *Store) {
		ctx, space := context.Background(), s.Space(scope)
		if _, _, err := space.CreateDispatch(ctx, dispatch("t")); err != nil {
			t.Fatal(err)
		}
		if _, _, err := space.CreateResult(ctx, results()["tool"]); err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"dispatches", "results"} {
			object := scope.String() + "/" + kind + "/" + escapeName(key)
			raw, err := s.bucket.ReadAll(ctx, object)
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; i < len(raw); i += 7 {
				bad := append(append([]byte{}, raw[:i]...), raw[i]^4)
				if i%2 == 0 {
					bad = append(bad, raw[i+1:]...)
				}
				if err := s.bucket.WriteAll(ctx, object, bad, nil); err != nil {
					t.Fatal(err)
				}
				var err error
				var first bool
				if kind == "results" {
					first, _, err = space.CreateResult(ctx, results()["tool"])
				} else {
					first, _, err = space.CreateDispatch(ctx, dispatch("other"))
				}
				if first || !errors.Is(err, ErrDamaged) {
					t.Fatalf("%s with byte %d changed: %v, %v", kind, i, first, err)
				}
			}
		}
	})
}

func TestARecordOfAnotherKeyOrShapeIsDamaged(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	space := openURL(t, Config{URL: "mem://"}).Space(scope)
	for i, record := range []string{`{"key":"other","token":"t"}`, `[]`, ``, `{"key":"5","tool":{},"model":{}}`, `{"key":"4"}`} {
		name := fmt.Sprint(i)
		for _, kind := range []Kind{KindDispatches, KindResults} {
			if _, _, err := space.Create(ctx, kind, name, []byte(record)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := space.Result(ctx, name); !errors.Is(err, ErrDamaged) {
			t.Errorf("result %s: %v", record, err)
		}
		if _, err := space.Dispatch(ctx, name); !errors.Is(err, ErrDamaged) && i < 3 {
			t.Errorf("dispatch %s: %v", record, err)
		}
	}
	_, _, err1 := space.CreateDispatch(ctx, Dispatch{Key: "k"})
	_, _, err2 := space.CreateResult(ctx, Result{Key: "k"})
	_, _, err3 := space.CreateResult(ctx, Result{Key: "k", Tool: &agent.ToolResult{}, Model: &ModelRecord{}})
	if err1 == nil || err2 == nil || err3 == nil {
		t.Error("a record that says nothing was taken")
	}
}

func FuzzRecord(f *testing.F) {
	for _, s := range []string{`{"key":"k","token":"t","at":"2026-01-02T03:04:05Z"}`, `{"key":"k","tool":{"state":"committed"}}`, `{"key":"k","model":null}`, `null`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := decodeResult(b, "k"); err == nil {
			if r.Key != "k" || (r.Tool == nil) == (r.Model == nil) {
				t.Fatalf("%+v", r)
			}
		} else if !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		d, err := decode(b, "k", func(v Dispatch) string { return v.Key })
		if err == nil && d.Key != "k" || err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(d, err)
		}
	})
}
