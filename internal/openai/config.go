package openai

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/holdfast-run/holdfast/internal/failpoint"
)

// Config says which server to ask and how.
type Config struct {
	// BaseURL ends before "/chat/completions", such as "https://api.openai.com/v1". It holds no
	// credentials, query or fragment.
	BaseURL string
	// Key is sent as a bearer token; empty sends none. It never appears in an error.
	Key   string `json:"-"`
	Model string
	// Stream asks for the answer as a stream, which shows progress; otherwise it comes in one piece.
	Stream bool
	// MaxOutput bounds the tokens that the model may write; 0 leaves it to the server.
	MaxOutput int
	// Temperature is sent when it is set, also when it is 0.
	Temperature *float32
	// HTTPClient lends its transport and time-out; nil is one of our own. Redirects to another host
	// are never followed.
	HTTPClient *http.Client
	// AttemptTimeout bounds one Ask; 0 means 10 minutes. The context bounds it too.
	AttemptTimeout time.Duration
	// IdleTimeout bounds the silence between two pieces of an answer; 0 means a minute. It runs
	// from the first byte on, because a model may think for minutes before it.
	IdleTimeout time.Duration
	// MaxAnswer bounds the bytes of an answer on the wire (0: 8 MiB), MaxLine those of one line of
	// a stream (0: 4 MiB), MaxArgs those of the arguments of one call (0: 2 MiB) and MaxCalls the
	// calls in one answer (0: 1,024). What is beyond is no answer.
	MaxAnswer, MaxLine, MaxArgs, MaxCalls int
}

// String returns the server and the model, so that a printed Config shows no key.
func (c Config) String() string { return fmt.Sprintf("model %q at %q", c.Model, c.host()) }

// GoString returns what String returns.
func (c Config) GoString() string { return c.String() }

// New returns a client for c, or says what is wrong with it. Nothing is sent.
func New(c Config) (*Client, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	api := goopenai.DefaultConfig(c.Key)
	api.BaseURL = c.BaseURL
	api.HTTPClient = &wire{http: httpClient(c.HTTPClient)}
	return &Client{cfg: c, api: goopenai.NewClientWithConfig(api)}, nil
}

func (c Config) check() error {
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		// The text is not repeated: it may hold a password.
		return errors.New("base URL of the model server is none; write it like \"https://api.openai.com/v1\"")
	case u.User != nil:
		return fmt.Errorf("base URL of the model server %q holds credentials; give the key by reference instead", u.Host)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return fmt.Errorf("base URL of the model server %q has a query or fragment; end it before \"/chat/completions\"", u.Host)
	case c.Model == "":
		return fmt.Errorf("no model is named for the server %q; name one", u.Host)
	case strings.ContainsFunc(c.Key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return fmt.Errorf("key for the model server %q holds a blank, a line break or a letter outside ASCII; check where it is read from", u.Host)
	case c.MaxOutput < 0 || c.MaxAnswer < 0 || c.MaxLine < 0 || c.MaxArgs < 0 || c.MaxCalls < 0 ||
		c.AttemptTimeout < 0 || c.IdleTimeout < 0:
		return fmt.Errorf("a limit of the model %q is negative; leave it out for the default", c.Model)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	c.AttemptTimeout = cmp.Or(c.AttemptTimeout, 10*time.Minute)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, time.Minute)
	c.MaxAnswer = cmp.Or(c.MaxAnswer, 8<<20)
	c.MaxLine = cmp.Or(c.MaxLine, 4<<20)
	c.MaxArgs = cmp.Or(c.MaxArgs, 2<<20)
	c.MaxCalls = cmp.Or(c.MaxCalls, 1024)
	return c
}

// host returns the server's name for messages.
func (c Config) host() string {
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return ""
	}
	return u.Host
}

// hide returns a copy of b without the key, which some servers repeat when they complain about it.
func (c Config) hide(b []byte) []byte {
	if len(c.Key) < minHidden {
		return bytes.Clone(b)
	}
	return bytes.ReplaceAll(b, []byte(c.Key), []byte("[key]"))
}

// minHidden is the shortest key that is looked for in messages: a shorter one is no secret, and hiding it
// would make them unreadable.
const minHidden = 4

// httpClient returns a copy of given, or a client of our own, that stays with the host it was sent to.
func httpClient(given *http.Client) *http.Client {
	hc := &http.Client{}
	if given != nil {
		*hc = *given
	} else {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DialContext = failpoint.Dial((&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext)
		t.MaxIdleConnsPerHost = 32
		t.MaxResponseHeaderBytes = 1 << 20
		hc.Transport = t
	}
	hc.CheckRedirect = sameHost
	return hc
}

// sameHost follows a redirect only where method, body and key go to whom they were meant for. Otherwise the
// redirect itself is the response, and an error.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > 3 || req.Method != first.Method || req.URL.Host != first.URL.Host || req.URL.Scheme != first.URL.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}
