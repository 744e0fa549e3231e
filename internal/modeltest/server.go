package modeltest

// A Server plays a [Config]. It is safe for concurrent use.
type Server struct{}

// Start starts a server.
func Start(c Config) (*Server, error) { return &Server{}, nil }

// URL returns the base URL for a client, such as "http://127.0.0.1:4321/v1".
func (s *Server) URL() string { return "" }

// Requests returns what was sent so far, in the order of arrival.
func (s *Server) Requests() []Request { return nil }

// Breaches returns what a strict provider would have refused, each with its request and reason.
func (s *Server) Breaches() []string { return nil }

// Charges returns what a provider would have charged so far.
func (s *Server) Charges() Charges { return Charges{} }

// Close stops the server and cuts what is open.
func (s *Server) Close() error { return nil }

// TB is the part of testing.TB that [ForTest] needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// ForTest starts a server that lives as long as the test, which fails on any breach.
func ForTest(t TB, c Config) *Server { return &Server{} }

// Load reads the cases of a file such as turns.json.
func Load(path string) ([]Case, error) { return nil, nil }

// Say returns a step in which the model answers with text.
func Say(text string) Step { return Step{} }

// Ask returns a step in which the model asks for calls; an empty ID is left out.
func Ask(calls ...Call) Step { return Step{} }

// Results counts the tool messages since the last user message: how far a turn has come.
func (r Request) Results() int { return 0 }
