package payments

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var order42 = Order{ID: "42", Item: "espresso cup", Status: "delivered", Total: 1990}

func start(t *testing.T, cfg Config) (*Service, string) {
	t.Helper()
	if cfg.Path == "" {
		cfg.Path = filepath.Join(t.TempDir(), "books.jsonl")
	}
	cfg.Orders = []Order{order42}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s)
	t.Cleanup(func() { h.Close(); s.Close() })
	return s, h.URL
}

// post asks for a refund and returns the status and the body of the answer.
func post(t *testing.T, url, key, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/refunds", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

const refund42 = `{"order":"42","amount":"19.90"}`

func TestSameKeyGetsTheSameAnswerAndOneEntry(t *testing.T) {
	t.Parallel()
	repeats := make(chan string, 2)
	s, url := start(t, Config{OnRepeat: func(key string) { repeats <- key }})
	status, first := post(t, url, `"k"`, refund42)
	if status != http.StatusCreated {
		t.Fatalf("status %d: %s", status, first)
	}
	// The same values written in another way are the same request.
	status, again := post(t, url, `"k"`, `{"amount": 19.9, "order": 42}`)
	if status != http.StatusCreated || again != first {
		t.Errorf("second answer %d %s, want 201 %s", status, again, first)
	}
	books := s.Books()
	if len(books.Entries) != 1 || books.Requests["k"] != 2 {
		t.Errorf("books %+v, want one entry and two requests", books)
	}
	if len(repeats) != 1 {
		t.Errorf("%d repeats, want 1", len(repeats))
	}
}

func TestConcurrentRequestsWithOneKeyMakeOneEntry(t *testing.T) {
	t.Parallel()
	s, url := start(t, Config{})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if status, body := post(t, url, `"k"`, refund42); status != http.StatusCreated {
				t.Errorf("status %d: %s", status, body)
			}
		})
	}
	all.Wait()
	if n := len(s.Books().Entries); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
}

func TestTwoKeysAreTwoRefunds(t *testing.T) {
	t.Parallel()
	s, url := start(t, Config{})
	post(t, url, `"a"`, refund42)
	post(t, url, `"b"`, refund42)
	if n := len(s.Books().Entries); n != 2 {
		t.Errorf("%d entries, want 2: a lost key must show up in the books", n)
	}
}

func TestAnotherPayloadUnderTheSameKeyIsRefused(t *testing.T) {
	t.Parallel()
	s, url := start(t, Config{})
	post(t, url, `"k"`, refund42)
	status, body := post(t, url, `"k"`, `{"order":"42","amount":"1.00"}`)
	if status != http.StatusUnprocessableEntity {
		t.Errorf("status %d: %s, want 422", status, body)
	}
	if n := len(s.Books().Entries); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
}

func TestBadRequestsAreRefusedAndLeaveNoEntry(t *testing.T) {
	t.Parallel()
	s, url := start(t, Config{})
	cases := map[string]struct {
		key, body string
		status    int
	}{
		"no key":             {``, refund42, 400},
		"bare key":           {`k`, refund42, 400},
		"empty key":          {`""`, refund42, 400},
		"half a key":         {`"k`, refund42, 400},
		"open escape":        {`"k\"`, refund42, 400},
		"bad escape":         {`"k\n"`, refund42, 400},
		"inner quote":        {`"k"k"`, refund42, 400},
		"huge key":           {`"` + strings.Repeat("k", 256) + `"`, refund42, 400},
		"no body":            {`"k"`, ``, 400},
		"cut body":           {`"k"`, `{"order":"42"`, 400},
		"array":              {`"k"`, `[]`, 400},
		"no amount":          {`"k"`, `{"order":"42"}`, 400},
		"unknown member":     {`"k"`, `{"order":"42","amount":"1","currency":"EUR"}`, 400},
		"case twin":          {`"k"`, `{"order":"42","Amount":"1"}`, 400},
		"twice":              {`"k"`, `{"order":"42","amount":"1","amount":"2"}`, 400},
		"trailing":           {`"k"`, refund42 + `{}`, 400},
		"null":               {`"k"`, `{"order":"42","amount":null}`, 400},
		"exponent":           {`"k"`, `{"order":"42","amount":1e1}`, 400},
		"three places":       {`"k"`, `{"order":"42","amount":"1.999"}`, 400},
		"negative":           {`"k"`, `{"order":"42","amount":"-1"}`, 400},
		"overflowing amount": {`"k"`, `{"order":"42","amount":"99999999999999999999"}`, 400},
		"huge body":          {`"k"`, `{"order":"` + strings.Repeat("4", maxRequest) + `","amount":"1"}`, 400},
		"nothing":            {`"k"`, `{"order":"42","amount":"0.00"}`, 422},
		"more than it was":   {`"k"`, `{"order":"42","amount":"19.91"}`, 422},
		"unknown order":      {`"k"`, `{"order":"43","amount":"1"}`, 404},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			status, body := post(t, url, c.key, c.body)
			if status != c.status || !strings.Contains(body, `"error"`) {
				t.Errorf("%d %s, want %d and an error", status, body, c.status)
			}
		})
	}
	if n := len(s.Books().Entries); n != 0 {
		t.Errorf("%d entries, want none", n)
	}
}

func TestBooksAreOnDiskBeforeAnybodyHearsOfThem(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "books.jsonl")
	onDisk := make(chan string, 1)
	_, url := start(t, Config{Path: path, OnCommit: func(string) {
		b, _ := os.ReadFile(path)
		onDisk <- string(b)
	}})
	post(t, url, `"k"`, refund42)
	if got := <-onDisk; !strings.Contains(got, `"key":"k"`) {
		t.Errorf("the file held %q when OnCommit ran", got)
	}
}

func TestReopenedBooksStillAnswerForTheirKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "books.jsonl")
	before, url := start(t, Config{Path: path})
	_, first := post(t, url, `"k"`, refund42)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	// A crash in the middle of an append: nobody was told of this one.
	if _, err := f.WriteString(`{"refund":"re_2","key":"half`); err != nil {
		t.Fatal(err)
	}
	f.Close()

	after, url := start(t, Config{Path: path})
	if diff := cmp.Diff(before.Books().Entries, after.Books().Entries); diff != "" {
		t.Errorf("entries changed (-before +after):\n%s", diff)
	}
	if _, again := post(t, url, `"k"`, refund42); again != first {
		t.Errorf("answer %s, want %s", again, first)
	}
	post(t, url, `"l"`, refund42)
	third, _ := start(t, Config{Path: path})
	if n := len(third.Books().Entries); n != 2 {
		t.Errorf("%d entries after an append behind a cut line, want 2", n)
	}
}

// TestTwoServicesDoNotShareBooks: the one that was not told of the other's entry would enter it again under its key.
func TestTwoServicesDoNotShareBooks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "books.jsonl")
	_, first := start(t, Config{Path: path})
	s, second := start(t, Config{Path: path})
	post(t, second, `"k"`, refund42)
	if status, body := post(t, first, `"k"`, refund42); status != http.StatusServiceUnavailable || !strings.Contains(body, "another service") {
		t.Errorf("%d %s, want 503 and why", status, body)
	}
	if status, _ := post(t, second, `"l"`, refund42); status != http.StatusCreated {
		t.Errorf("the other one: %d, want 201", status)
	}
	again, _ := start(t, Config{Path: path})
	if diff := cmp.Diff(s.Books().Entries, again.Books().Entries); diff != "" || len(s.Books().Entries) != 2 {
		t.Errorf("%d entries; on disk (-want +got):\n%s", len(s.Books().Entries), diff)
	}
}

// TestARequestThatOutlivesItsServiceEntersNothing is a restart under a request that has come and is not entered yet.
func TestARequestThatOutlivesItsServiceEntersNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "books.jsonl")
	s, url := start(t, Config{Path: path})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if status, body := post(t, url, `"k"`, refund42); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s, want 503", status, body)
	}
	after, _ := start(t, Config{Path: path})
	if n := len(s.Books().Entries) + len(after.Books().Entries); n != 0 {
		t.Errorf("%d entries, want none", n)
	}
}

func TestDamagedBooksAreNamedNotSkipped(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "books.jsonl")
	if err := os.WriteFile(path, []byte("{}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := New(Config{Path: path})
	if err == nil || !strings.Contains(err.Error(), "entry 2 is damaged") {
		t.Errorf("error %v, want one that names entry 2", err)
	}
}

func TestAServiceThatIgnoresKeysRefundsTwice(t *testing.T) {
	t.Parallel()
	s, url := start(t, Config{IgnoreKeys: true})
	post(t, url, `"k"`, refund42)
	post(t, url, `"k"`, refund42)
	if n := len(s.Books().Entries); n != 2 {
		t.Errorf("%d entries, want 2", n)
	}
}

func TestFailureAfterTheCommitHidesAnEntryThatTheKeyFinds(t *testing.T) {
	t.Parallel()
	s, url := start(t, Config{})
	s.Inflict(FaultError)
	if status, _ := post(t, url, `"k"`, refund42); status != http.StatusInternalServerError {
		t.Errorf("status %d, want 500", status)
	}
	if status, _ := post(t, url, `"k"`, refund42); status != http.StatusCreated {
		t.Errorf("status %d, want 201", status)
	}
	if n := len(s.Books().Entries); n != 1 {
		t.Errorf("%d entries, want 1", n)
	}
}

func TestDelayHoldsTheAnswerNotTheEntry(t *testing.T) {
	t.Parallel()
	committed := make(chan string, 1)
	_, url := start(t, Config{Delay: time.Hour, OnCommit: func(key string) { committed <- key }})
	client := http.Client{Timeout: 200 * time.Millisecond}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/refunds", strings.NewReader(refund42))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", `"k"`)
	res, err := client.Do(req)
	if err == nil {
		res.Body.Close()
		t.Errorf("status %d, want no answer", res.StatusCode)
	}
	if key := <-committed; key != "k" {
		t.Errorf("committed %q, want \"k\"", key)
	}
}

func TestOrdersCanBeLookedUp(t *testing.T) {
	t.Parallel()
	_, url := start(t, Config{})
	for path, want := range map[string]string{
		"/orders/42": `{"id":"42","item":"espresso cup","status":"delivered","total":"19.90"}`,
		"/orders/43": `{"error":"no order \"43\""}`,
		"/books":     `{"entries":[],"requests":{}}`,
	} {
		res, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if got := strings.TrimSpace(string(b)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func FuzzReadRequest(f *testing.F) {
	for _, s := range []string{refund42, `{"amount": 19.9, "order": 42}`, `{"order":"42","amount":"1","amount":"2"}`, `{`, ``, `{"":0}`, `null`, "{\"order\":\"\xff\",\"amount\":1}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		req, err := readRequest(strings.NewReader(body))
		if err != nil {
			return
		}
		if back, err := ParseAmount(req.Amount.String()); err != nil || back != req.Amount {
			t.Errorf("amount %d reads back as %d, %v", req.Amount, back, err)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{`"k"`, `"a\"b\\c"`, `"`, `""`, `"\`, "\"\x7f\"", `k`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		key, err := parseKey([]string{header})
		if err != nil {
			return
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if back, err := parseKey([]string{quoted}); err != nil || back != key {
			t.Errorf("key %q reads back as %q, %v", key, back, err)
		}
	})
}
