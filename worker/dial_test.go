package worker

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc/codes"

	"github.com/holdfast-run/holdfast/agent"
)

func allAttributes() map[string]enumspb.IndexedValueType {
	m := map[string]enumspb.IndexedValueType{}
	for _, a := range agent.Attributes() {
		m[a.Name], _ = enumspb.IndexedValueTypeFromString(a.Type)
	}
	return m
}

func TestANamespaceThatIsSetUpIsConnectedTo(t *testing.T) {
	t.Parallel()
	f := &fakeTemporal{namespace: "team", attributes: allAttributes()}
	c, err := dial(t.Context(), f.start(t), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

// Measured: with 256 KiB a model that asked for 16 reads with arguments just below that held its turn up for ever.
func TestTheLargestWorkflowTaskIsTakenByTheServer(t *testing.T) {
	t.Parallel()
	const calls, request = 16 + 1, 4 << 20 // workflows.parallel and an effect; gRPC's limit at the server
	if most := calls * (oversize + 4<<10); most > request*3/4 {
		t.Errorf("a workflow task may have %d bytes, the server takes %d", most, request)
	}
}

func TestEachTroubleAtTheStartSaysWhatToDo(t *testing.T) {
	t.Parallel()
	wrongType := allAttributes()
	wrongType["HoldfastAgent"] = enumspb.INDEXED_VALUE_TYPE_TEXT
	tests := []struct {
		name string
		fake *fakeTemporal
		use  string // namespace
		want string
	}{
		{"namespace", &fakeTemporal{namespace: "team"}, "other", "no namespace \"other\"; set TEMPORAL_NAMESPACE, or create it"},
		{"attributes", &fakeTemporal{namespace: "team"}, "team", "run \"holdfast setup\" once"},
		{"type", &fakeTemporal{namespace: "team", attributes: wrongType}, "team", "lacks the search attributes HoldfastAgent;"},
		{"unauthenticated", &fakeTemporal{namespace: "team", deny: codes.Unauthenticated}, "team", "not for you"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := tt.fake.start(t)
			o.Namespace = tt.use
			_, err := dial(t.Context(), o, slog.New(slog.DiscardHandler))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error is %v, want %q in it", err, tt.want)
			}
		})
	}
}

func TestAServerThatTellsWorkersNothingAboutTheNamespaceIsUsed(t *testing.T) {
	t.Parallel()
	f := &fakeTemporal{namespace: "team", deny: codes.PermissionDenied}
	var log bytes.Buffer
	c, err := dial(t.Context(), f.start(t), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	if got := strings.Count(log.String(), "could not be looked at"); got != 2 {
		t.Errorf("%d warnings, want 2:\n%s", got, &log)
	}
}

func TestNoServerIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	_, err = dial(t.Context(), client.Options{HostPort: address}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "no Temporal server at "+address+"; start one with") {
		t.Errorf("got %v", err)
	}
}

func TestAPortThatNeverAnswersDoesNotHangTheStart(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	begin := time.Now()
	_, err = dial(t.Context(), client.Options{HostPort: l.Addr().String()}, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "does not answer as a Temporal server") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took > 2*dialTimeout {
		t.Errorf("it took %s", took)
	}
}

func TestAStopWhileConnectingIsNoTrouble(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c, err := parseWith(nil, t.TempDir(), least)
	if err != nil {
		t.Fatal(err)
	}
	if err := (Options{Logger: slog.New(slog.DiscardHandler)}).Run(ctx, c); err != nil {
		t.Errorf("got %v", err)
	}
}
