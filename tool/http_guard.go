package tool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-run/holdfast/internal/failpoint"
)

// A guard decides which addresses a tool's host may turn out to be. It looks at the address of each
// connection, not at the answer of a name server, so that a second answer changes nothing.
type guard struct {
	host   string // lower case, no port, no brackets
	port   string
	access access
	refuse []string
}

// access is how far from public an address may be.
type access int

const (
	accessPublic   access = iota
	accessPrivate         // and private ones
	accessLoopback        // and loopback ones
	accessNamed           // only the address that the file names
	accessNone            // of an address: reached by no name
)

// An errRefused is the guard's word; no attempt will change it.
var errRefused = errors.New("the address is refused")

func newGuard(base *url.URL, allowPrivate bool, refuse []string) *guard {
	g := &guard{host: strings.TrimSuffix(strings.ToLower(base.Hostname()), "."), port: base.Port(), refuse: refuse}
	if g.port == "" {
		g.port = map[string]string{"http": "80", "https": "443"}[base.Scheme]
	}
	_, err := netip.ParseAddr(g.host)
	switch {
	case err == nil:
		g.access = accessNamed
	case allowPrivate || g.host == "localhost" || strings.HasSuffix(g.host, ".localhost"):
		g.access = accessLoopback
	case !strings.Contains(g.host, ".") || slices.ContainsFunc(internalDomains[:], g.below):
		g.access = accessPrivate
	}
	return g
}

// internalDomains are those that the public name system will not hand out: RFC 6762, RFC 8375, ICANN's
// reservation of .internal, and what is customary in clusters and homes.
var internalDomains = [...]string{".internal", ".local", ".lan", ".home.arpa", ".svc", ".cluster.local"}

func (g *guard) below(domain string) bool { return strings.HasSuffix(g.host, domain) }

// control is called for each address before it is connected to.
func (g *guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: %q is no IP address", errRefused, address)
	}
	addr := plainAddr(at.Addr())
	if g.access == accessNamed {
		if named, _ := netip.ParseAddr(g.host); plainAddr(named) != addr {
			return fmt.Errorf("%w: %s is not what the file names", errRefused, addr)
		}
		return nil
	}
	if accessOf(addr) > g.access {
		return fmt.Errorf("%w: %q is at %s, which is not public; if that is right, name the address in the tool's URL or set allow_private",
			errRefused, g.host, addr)
	}
	return g.checkRefused(ctx, addr, at.Port())
}

// checkRefused compares with the addresses in refuse, unless the file itself names one of them as the
// tool's host. A name that does not resolve now refuses: it might be the one.
func (g *guard) checkRefused(ctx context.Context, addr netip.Addr, port uint16) error {
	for _, r := range g.refuse {
		host, p, err := net.SplitHostPort(r)
		if err != nil || p != fmt.Sprint(port) || strings.EqualFold(host, g.host) && p == g.port {
			continue
		}
		theirs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return fmt.Errorf("cannot tell %s from %s, which no tool may reach: %w", addr, r, err)
		}
		for _, a := range theirs {
			if a = plainAddr(a); a == addr || a.IsUnspecified() && addr.IsLoopback() || a.IsLoopback() && addr.IsLoopback() {
				return fmt.Errorf("%w: %s is %s, which no tool may reach", errRefused, addr, r)
			}
		}
	}
	return nil
}

// plainAddr unwraps an IPv4 address from its IPv6 forms: mapped, and behind a NAT64 (RFC 6052).
func plainAddr(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if netip.MustParsePrefix("64:ff9b::/96").Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a
}

func accessOf(a netip.Addr) access {
	in := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return netip.MustParsePrefix(p).Contains(a) })
	}
	switch {
	case a.IsLoopback():
		return accessLoopback
	case !a.IsGlobalUnicast() || in("0.0.0.0/8", "240.0.0.0/4"): // link-local, multicast, unspecified
		return accessNone
	// Private, shared (RFC 6598), protocol assignments, benchmarking, and IPv6 site-local.
	case a.IsPrivate() || in("100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "fec0::/10"):
		return accessPrivate
	default:
		return accessPublic
	}
}

func newTransport(g *guard, reuse bool) *http.Transport {
	d := &net.Dialer{Timeout: 10 * time.Second, ControlContext: g.control}
	var http1 http.Protocols
	http1.SetHTTP1(true)
	return &http.Transport{
		DialContext:            failpoint.Dial(d.DialContext),
		Protocols:              &http1,
		DisableKeepAlives:      !reuse,
		TLSHandshakeTimeout:    10 * time.Second,
		IdleConnTimeout:        90 * time.Second,
		MaxIdleConnsPerHost:    16,
		MaxResponseHeaderBytes: 1 << 20,
	}
}
