package payments

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// get returns the status and the body of an answer.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(b))
}

// try posts and returns the status, 0 when there was no answer.
func try(t *testing.T, url, key, body string, wait time.Duration) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	client := http.Client{Timeout: wait, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, ""
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, ""
	}
	return res.StatusCode, strings.TrimSpace(string(b))
}

func TestTheThreeKindsDifferInWhatARepeatDoesAndInWhatTheySay(t *testing.T) {
	t.Parallel()
	for title, c := range map[string]struct {
		cfg     Config
		entries int
		status  int
		found   string
	}{
		"honours keys": {Config{}, 1, 200, `{"refunds":[{"refund":"re_1","key":"k","order":"42","amount":"19.90","void":false}]}`},
		"can be asked": {Config{IgnoreKeys: true}, 2, 200, `{"refunds":[{"refund":"re_1","key":"k","order":"42","amount":"19.90","void":false},{"refund":"re_2","key":"k","order":"42","amount":"19.90","void":false}]}`},
		"neither":      {Config{IgnoreKeys: true, Unaskable: true}, 2, 405, ""},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			s, url := start(t, c.cfg)
			post(t, url, `"k"`, refund42)
			post(t, url, `"k"`, refund42)
			if n := len(s.Books().Entries); n != c.entries {
				t.Errorf("%d entries, want %d", n, c.entries)
			}
			status, body := get(t, url+"/refunds?key=k")
			if status != c.status || c.found != "" && body != c.found {
				t.Errorf("%d %s, want %d %s", status, body, c.status, c.found)
			}
			if status, body := get(t, url+"/refunds?key=l&order=42"); status != c.status || status == 200 && body != `{"refunds":[]}` {
				t.Errorf("another key: %d %s", status, body)
			}
		})
	}
}

func TestOnlyAServiceThatIgnoresKeysTakesARequestWithoutOne(t *testing.T) {
	t.Parallel()
	_, careful := start(t, Config{})
	s, careless := start(t, Config{IgnoreKeys: true})
	if status, _ := try(t, careful+"/refunds", "", refund42, time.Minute); status != http.StatusBadRequest {
		t.Errorf("status %d, want 400", status)
	}
	if status, _ := try(t, careless+"/refunds", "", refund42, time.Minute); status != http.StatusCreated || len(s.Books().Entries) != 1 {
		t.Errorf("status %d, want 201 and an entry", status)
	}
}

func TestWhatWasMadeIsFoundByKeyAndByOrder(t *testing.T) {
	t.Parallel()
	_, url := start(t, Config{})
	post(t, url, `"s~0:turn-1/2.1/ab"`, refund42)
	for query, want := range map[string]int{
		"key=s%7E0%3Aturn-1%2F2.1%2Fab":          1,
		"order=42":                               1,
		"order=43":                               0,
		"order=43&key=s%7E0%3Aturn-1%2F2.1%2Fab": 0,
		"key=":                                   0,
	} {
		if _, body := get(t, url+"/refunds?"+query); strings.Count(body, `"re_`) != want {
			t.Errorf("%s: %s, want %d", query, body, want)
		}
	}
	if status, _ := get(t, url+"/refunds"); status != http.StatusBadRequest {
		t.Errorf("a question without a filter: status %d, want 400", status)
	}
}

func TestARefundCanBeTakenBackAndTheBooksSaySo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "books.jsonl")
	s, url := start(t, Config{Path: path})
	post(t, url, `"k"`, refund42)
	void := url + "/refunds/re_1/void"
	status, first := try(t, void, `"k/undo-1"`, "", time.Minute)
	if want := `{"void":"vo_2","refund":"re_1","order":"42","amount":"19.90"}`; status != http.StatusCreated || first != want {
		t.Fatalf("%d %s, want 201 %s", status, first, want)
	}
	if status, again := try(t, void, `"k/undo-1"`, "{}", time.Minute); status != http.StatusCreated || again != first {
		t.Errorf("again: %d %s, want 201 %s", status, again, first)
	}
	for title, c := range map[string]struct {
		url, key, body string
		status         int
	}{
		"the refund's key":     {void, `"k"`, "", 422},
		"no such refund":       {url + "/refunds/re_9/void", `"l"`, "", 404},
		"the taking back":      {url + "/refunds/vo_2/void", `"l"`, "", 404},
		"no key":               {void, "", "", 400},
		"a body":               {void, `"l"`, `{"amount":"1"}`, 400},
		"the key for a refund": {url + "/refunds", `"k/undo-1"`, refund42, 422},
	} {
		if status, body := try(t, c.url, c.key, c.body, time.Minute); status != c.status {
			t.Errorf("%s: %d %s, want %d", title, status, body, c.status)
		}
	}
	if _, body := get(t, url+"/refunds?key=k"); !strings.Contains(body, `"void":true`) {
		t.Errorf("the refund is told of as %s", body)
	}
	if _, body := get(t, url+"/refunds?key=k/undo-1"); !strings.Contains(body, `"voids":[{"refund":"vo_2"`) {
		t.Errorf("the taking back is told of as %s", body)
	}
	again, _ := start(t, Config{Path: path})
	if diff := cmp.Diff(s.Books().Entries, again.Books().Entries); diff != "" || len(s.Books().Entries) != 2 {
		t.Errorf("%d entries; after a restart (-before +after):\n%s", len(s.Books().Entries), diff)
	}
}

func TestTheStateOfAnOrderIsWhatWasRefundedAndNotTakenBack(t *testing.T) {
	t.Parallel()
	_, url := start(t, Config{})
	want := func(state string) {
		t.Helper()
		if _, body := get(t, url+"/orders/42/state"); body != state {
			t.Errorf("%s, want %s", body, state)
		}
	}
	want(`{"order":"42","status":"delivered","refunded":"0.00","refunds":0}`)
	post(t, url, `"a"`, refund42)
	post(t, url, `"b"`, `{"order":"42","amount":"0.10"}`)
	want(`{"order":"42","status":"delivered","refunded":"20.00","refunds":2}`)
	try(t, url+"/refunds/re_1/void", `"c"`, "", time.Minute)
	want(`{"order":"42","status":"delivered","refunded":"0.10","refunds":1}`)
	if status, _ := get(t, url+"/orders/43/state"); status != http.StatusNotFound {
		t.Errorf("status %d, want 404", status)
	}
}

func TestEachFaultLeavesWhatItSaysAndTheNextRequestIsWell(t *testing.T) {
	t.Parallel()
	for fault, c := range map[Fault]struct {
		status, entries int
	}{
		FaultNone:    {201, 1},
		FaultRefuse:  {503, 0},
		FaultLose:    {0, 0},
		FaultDrop:    {0, 1},
		FaultError:   {500, 1},
		FaultSilence: {0, 1},

		Fault429Seconds:        {429, 0},
		Fault429Date:           {429, 0},
		Fault503Seconds:        {503, 0},
		Fault503Date:           {503, 0},
		FaultEntered429Seconds: {429, 1},
		FaultEntered429Date:    {429, 1},
		FaultEntered503Seconds: {503, 1},
		FaultEntered503Date:    {503, 1},
	} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			committed := make(chan string, 2)
			s, url := start(t, Config{OnCommit: func(key string) { committed <- key }})
			s.Inflict(fault)
			wait := time.Minute
			if fault == FaultSilence {
				wait = 200 * time.Millisecond
			}
			if status, body := try(t, url+"/refunds", `"k"`, refund42, wait); status != c.status {
				t.Errorf("%d %s, want %d", status, body, c.status)
			}
			if n := len(s.Books().Entries); n != c.entries || len(committed) != n {
				t.Errorf("%d entries, %d told of, want %d", n, len(committed), c.entries)
			}
			if status, _ := try(t, url+"/refunds", `"k"`, refund42, time.Minute); status != http.StatusCreated {
				t.Errorf("again: %d, want 201", status)
			}
			if n := len(s.Books().Entries); n != 1 || s.Books().Requests["k"] != 2 {
				t.Errorf("%d entries of %d requests, want one of two", n, s.Books().Requests["k"])
			}
		})
	}
}

func TestAFaultIsForARequestThatCouldHaveMadeAnEntry(t *testing.T) {
	t.Parallel()
	s, url := start(t, Config{})
	s.Inflict(FaultError)
	post(t, url, `"k"`, `{"order":"43","amount":"1"}`)
	get(t, url+"/orders/42")
	if status, _ := post(t, url, `"k"`, refund42); status != http.StatusInternalServerError {
		t.Errorf("status %d, want 500", status)
	}
}

func TestAServiceWithTooMuchToDoSaysWhenToComeAgain(t *testing.T) {
	t.Parallel()
	s, url := start(t, Config{IgnoreKeys: true})
	for fault := range putOffs {
		s.Inflict(fault)
		began := time.Now()
		res, err := http.Post(url+"/refunds", "application/json", strings.NewReader(refund42))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		again := res.Header.Get("Retry-After")
		if !strings.HasSuffix(string(fault), "date") {
			if again != "1" {
				t.Errorf("%s: Retry-After %q, want 1", fault, again)
			}
			continue
		}
		at, err := http.ParseTime(again)
		if wait := at.Sub(began); err != nil || wait < time.Second || wait > 2*time.Second+time.Since(began) {
			t.Errorf("%s: Retry-After %q is %v ahead (%v), want one to two seconds", fault, again, wait, err)
		}
	}
}

func TestTheBooksTellTheKeyThatWasSentEvenWhereItMeansNothing(t *testing.T) {
	t.Parallel()
	s, url := start(t, Config{IgnoreKeys: true, Unaskable: true})
	post(t, url, `"k"`, refund42)
	post(t, url, `"a\"b"`, refund42)
	post(t, url, "", refund42)
	try(t, url+"/refunds/re_1/void", `"k/undo-1"`, "", time.Minute)
	var keys []string
	for _, e := range s.Books().Entries {
		keys = append(keys, e.Key)
	}
	if diff := cmp.Diff([]string{"k", `a"b`, "", "k/undo-1"}, keys); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
}
