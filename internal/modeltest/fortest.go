package modeltest

// TB is the part of testing.TB that [ForTest] needs, so that the demo does not carry package testing.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

// ForTest starts a server that lives as long as the test, which fails on any breach.
func ForTest(t TB, c Config) *Server {
	t.Helper()
	s, err := Start(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		t.Helper()
		_ = s.Close()
		for _, b := range s.Breaches() {
			t.Errorf("a strict provider would refuse it: %s", b)
		}
	})
	return s
}
