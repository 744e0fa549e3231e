package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-run/holdfast/agent"
)

func TestEachClaimOfAnIntentIsOneKeysForGood(t *testing.T) {
	eachSeal(t, func(t *testing.T, s *Store) {
		ctx, space := context.Background(), s.Space(scope)
		for _, c := range []struct {
			n         int
			key, want string
		}{{1, "a", "a"}, {1, "b", "a"}, {1, "a", "a"}, {2, "b", "b"}} {
			if got, err := space.CreateIntent(ctx, "i", c.n, c.key); err != nil || got.Key != c.want {
				t.Errorf("claim %d for %q: %q, %v", c.n, c.key, got.Key, err)
			}
			if got, err := space.Intent(ctx, "i", c.n); err != nil || got.Key != c.want {
				t.Errorf("claim %d is %q's, %v", c.n, got.Key, err)
			}
		}
		if _, err := space.Intent(ctx, "i", 3); !errors.Is(err, ErrAbsent) {
			t.Error(err)
		}
		if _, err := space.Intent(ctx, "other", 1); !errors.Is(err, ErrAbsent) {
			t.Error(err)
		}
		for _, bad := range []func() error{
			func() error { _, err := space.CreateIntent(ctx, "", 1, "a"); return err },
			func() error { _, err := space.CreateIntent(ctx, "i", 0, "a"); return err },
			func() error { _, err := space.CreateIntent(ctx, "i", 9, ""); return err },
		} {
			if bad() == nil {
				t.Error("a claim without an intent, a number or a key was taken")
			}
		}
	})
}

// A release that knows nothing of forks reads the member "key" only, and takes a claim without one as damaged.
func TestAClaimOfAForkIsNoneThatAnOlderReleaseBuildsOn(t *testing.T) {
	eachSeal(t, func(t *testing.T, s *Store) {
		ctx, space := context.Background(), s.Space(scope)
		place, action := agent.Place{Turn: 1, Step: 1, Call: 1}, agent.DigestOf(nil)
		own := agent.ActionKey(scope, place, action)
		forks := agent.ActionKey(agent.Scope{Session: scope.Session, Life: "ffffffff"}, place, action)
		for i, want := range []struct{ key, older string }{{own, own}, {forks, ""}} {
			got, err := space.CreateIntent(ctx, "i", i+1, want.key)
			if again, e := space.Intent(ctx, "i", i+1); err != nil || e != nil || got.Key != want.key || again != got {
				t.Errorf("%q: %q, %v; then %q, %v", want.key, got.Key, err, again.Key, e)
			}
			var older struct {
				Key string `json:"key"`
			}
			b, err := space.Get(ctx, KindIntents, IntentName("i", i+1))
			if err != nil || json.Unmarshal(b, &older) != nil || older.Key != want.older {
				t.Errorf("%s, %v: an older release reads the key %q", b, err, older.Key)
			}
		}
		for n, junk := range []string{`{"key":"a","fork":"b"}`, `{"fork":""}`, `{"fork":7}`, `{}`} {
			if _, _, err := space.Create(ctx, KindIntents, IntentName("j", n+1), []byte(junk)); err != nil {
				t.Fatal(err)
			}
			if got, err := space.Intent(ctx, "j", n+1); !errors.Is(err, ErrDamaged) {
				t.Errorf("%s: %+v, %v", junk, got, err)
			}
		}
	})
}

func TestOfManyClaimsAtOnceOneStands(t *testing.T) {
	eachSeal(t, func(t *testing.T, s *Store) {
		var wg sync.WaitGroup
		got := make([]string, 16)
		for i := range got {
			wg.Go(func() {
				in, err := s.Space(scope).CreateIntent(context.Background(), "i", 1, fmt.Sprint(i))
				if err != nil {
					t.Error(err)
				}
				got[i] = in.Key
			})
		}
		wg.Wait()
		for _, key := range got {
			if key != got[0] {
				t.Errorf("the claim is said to be of %q and of %q", key, got[0])
			}
		}
	})
}

func FuzzAForeignClaimIsAKeyOrDamage(f *testing.F) {
	for _, s := range []string{"", "null", "{}", `{"key":"a"}`, `{"key":7}`, `{"key":"a","more":1}`, "[]", `{"key":"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := decodeIntent(b, "i", 1)
		if (err == nil) == (v.Key == "") || err != nil && !errors.Is(err, ErrDamaged) {
			t.Errorf("%q: %+v, %v", b, v, err)
		}
	})
}

func TestADispatchRecordKeepsWhatCompensationNeeds(t *testing.T) {
	eachSeal(t, func(t *testing.T, s *Store) {
		d := dispatch("t")
		d.Args, d.Undoes = `{"amount":12345678901234567890.10}`, "s~0a1b2c3d:turn-1/2.2/0123456789abcdef"
		d.Grant = &agent.Grant{ID: key + "#1", Action: d.Action, Decisions: []agent.Decided{{Claimed: true}}}
		if first, _, err := s.Space(scope).CreateDispatch(context.Background(), d); err != nil || !first {
			t.Fatal(first, err)
		}
		if got, err := s.Space(scope).Dispatch(context.Background(), key); err != nil || !cmp.Equal(got, d) {
			t.Errorf("%v\n%s", err, cmp.Diff(d, got))
		}
	})
}

func TestClosingNamesAreApart(t *testing.T) {
	t.Parallel()
	if a, b := ClosingName(7, 0), ClosingName(7, 2); a != "turn-7" || b != "turn-7-undo-2" {
		t.Errorf("%q, %q", a, b)
	}
}
