package openai

import (
	"context"
	"net/http"
	"time"
)

// Config says which server to ask and how.
type Config struct {
	// BaseURL ends before "/chat/completions", such as "https://api.openai.com/v1". It holds no
	// credentials, query or fragment.
	BaseURL string
	// Key is sent as a bearer token; empty sends none. It never appears in an error.
	Key   string `json:"-"`
	Model string
	// Plain asks for the answer in one piece instead of as a stream.
	Plain bool
	// MaxOutput bounds the tokens that the model may write; 0 leaves it to the server.
	MaxOutput int
	// Temperature is sent when it is set, also when it is 0.
	Temperature *float32
	// HTTPClient is used for its transport and time-out; nil is one of our own. Its redirect policy
	// is replaced.
	HTTPClient *http.Client
	// AttemptTimeout bounds one Ask; 0 means 10 minutes. The context bounds it too.
	AttemptTimeout time.Duration
	// IdleTimeout bounds the silence between two pieces of an answer, from its first byte on; 0
	// means a minute.
	IdleTimeout time.Duration
	// MaxAnswer bounds the bytes of an answer on the wire (0: 8 MiB), MaxLine those of one line of
	// a stream (0: 4 MiB), MaxArgs those of the arguments of one call (0: 2 MiB) and MaxCalls the
	// calls in one answer (0: 1,024). What is beyond is no answer.
	MaxAnswer, MaxLine, MaxArgs, MaxCalls int
}

// A Client asks one model on one server. It is safe for concurrent use.
type Client struct{ cfg Config }

// New returns a client for c, or says what is wrong with it. Nothing is sent.
func New(c Config) (*Client, error) { return &Client{cfg: c}, nil }

// Ask returns the model's answer to r, or an [*Error].
func (c *Client) Ask(ctx context.Context, r Request) (Answer, error) {
	return Answer{}, &Error{Type: "internal", Message: "not built yet"}
}

// ObjectText returns args if they can be sent back to a provider, which wants the text of a JSON object in
// valid UTF-8, and "{}" otherwise.
func ObjectText(args string) string { return args }
