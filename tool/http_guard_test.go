package tool

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestWhichAddressesAHostMayTurnOutToBe(t *testing.T) {
	t.Parallel()
	const public, private, loopback, metadata = "93.184.216.34", "10.1.2.3", "127.0.0.1", "169.254.169.254"
	cases := []struct {
		url          string
		allowPrivate bool
		allowed      []string
		refused      []string
	}{
		{
			"https://api.example.com", false,
			[]string{public, "2606:2800:220:1::1"},
			[]string{
				private, loopback, metadata, "0.0.0.0", "::", "::1", "fe80::1%eth0", "fd00::1", "fec0::1", "224.0.0.1", "255.255.255.255", "100.64.0.1",
				"192.168.1.1", "172.16.0.1", "198.18.0.1", "192.0.0.1", "0.1.2.3", "240.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
			},
		},
		{"https://api.example.com", true, []string{public, private, loopback, "::1"}, []string{metadata, "fe80::1", "0.0.0.0"}},
		{"http://payments:8080", false, []string{public, private, "fd00::1"}, []string{loopback, metadata}},
		{"http://payments.prod.svc.cluster.local", false, []string{private}, []string{loopback, metadata}},
		{"http://pay.internal.", false, []string{private}, []string{loopback, metadata}},
		{"http://internal.example.com", false, []string{public}, []string{private}},
		{"http://notinternal", false, []string{private}, []string{loopback}},
		{"http://localhost:1", false, []string{loopback, "::1"}, []string{metadata}},
		{"http://x.localhost", false, []string{loopback}, []string{metadata}},
		{"http://localhost.example.com", false, []string{public}, []string{loopback}},
		{"http://127.0.0.1", false, []string{loopback, "::ffff:127.0.0.1"}, []string{public, private, "127.0.0.2"}},
		{"http://169.254.169.254", false, []string{metadata}, []string{public}},
		{"http://[::1]:80", false, []string{"::1"}, []string{loopback}},
	}
	for _, c := range cases {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		g := newGuard(u, c.allowPrivate, nil)
		for want, addrs := range map[bool][]string{true: c.allowed, false: c.refused} {
			for _, a := range addrs {
				err := g.control(t.Context(), "tcp", net.JoinHostPort(a, "80"), nil)
				if (err == nil) != want {
					t.Errorf("%s (private %v) at %s: %v", c.url, c.allowPrivate, a, err)
				}
			}
		}
	}
}

func TestTemporalIsReachedOnlyWhereTheFileNamesIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url, refuse, at string
		allowed         bool
	}{
		{"http://localhost:7233", "127.0.0.1:7233", "127.0.0.1:7233", false},
		{"http://localhost:7233", "127.0.0.1:7233", "[::1]:7233", false},
		{"http://localhost:7233", "0.0.0.0:7233", "127.0.0.1:7233", false},
		{"http://localhost:7233", "localhost:7233", "127.0.0.1:7233", true}, // named
		{"http://localhost:8080", "127.0.0.1:7233", "127.0.0.1:8080", true},
		{"http://temporal:7233", "10.0.0.5:7233", "10.0.0.5:7233", false},
		{"http://temporal:7233", "10.0.0.6:7233", "10.0.0.5:7233", true},
		{"http://10.0.0.5:7233", "10.0.0.5:7233", "10.0.0.5:7233", true},
		{"http://payments:7233", "no-such-host.invalid:7233", "10.0.0.5:7233", false},
		{"http://payments", "not an address", "10.0.0.5:80", true},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		err = newGuard(u, true, []string{c.refuse}).control(t.Context(), "tcp", c.at, nil)
		if (err == nil) != c.allowed {
			t.Errorf("%s at %s, refusing %s: %v", c.url, c.at, c.refuse, err)
		}
	}
}

// rebound makes a tool whose host name has come to resolve to addr.
func rebound(t *testing.T, tool Tool, addr string) {
	t.Helper()
	h := tool.(*httpTool)
	transport := h.client.Transport.(*http.Transport)
	dial := transport.DialContext
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) { return dial(ctx, network, addr) }
}

func TestANameThatResolvesToLoopbackIsNotConnectedTo(t *testing.T) {
	t.Parallel()
	b := serve(t, ok)
	tool := newHTTP(t, HTTPConfig{Method: "POST", URL: "http://api.example.com"})
	rebound(t, tool, strings.TrimPrefix(b.URL, "http://"))
	_, err := do(t, tool, `{"order":"1"}`)
	if err == nil || Meaning(err) != OutcomeFailed || !strings.Contains(err.Error(), "allow_private") {
		t.Errorf("got %v", err)
	}
	allowed := newHTTP(t, HTTPConfig{Method: "POST", URL: "http://api.example.com", AllowPrivate: true})
	rebound(t, allowed, strings.TrimPrefix(b.URL, "http://"))
	if _, err := do(t, allowed, `{"order":"1"}`); err != nil {
		t.Errorf("allowed: %v", err)
	}
	if n := len(b.asked()); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func FuzzAccess(f *testing.F) {
	for _, s := range []string{"127.0.0.1", "::1", "64:ff9b::1", "::ffff:0:0", "10.0.0.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := netip.ParseAddr(s)
		if err != nil {
			return
		}
		a = plainAddr(a)
		if accessOf(a) == accessPublic && (a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified()) {
			t.Errorf("%s is public", a)
		}
	})
}
