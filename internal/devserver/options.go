package devserver

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// host is the only address that the server listens on: a development server asks nobody who they are.
const host = "127.0.0.1"

// Retention is how long the server keeps the history of a closed workflow.
const Retention = 90 * 24 * time.Hour

// Options say what to start. The zero value is a server in memory on free ports with a Web UI.
type Options struct {
	Binary    string    // path of the temporal command; empty: see [Find]
	DBFile    string    // SQLite file that keeps the state; empty keeps it in memory
	Port      int       // of the gRPC front end; 0 chooses a free one
	UIPort    int       // of the Web UI; 0 chooses a free one
	Headless  bool      // without the Web UI
	Namespace string    // made if it is not there; empty is "default"
	Log       io.Writer // gets what the server prints; nil drops it
	// Dynamic are further dynamic configuration values, "key=JSON"; they win over the tuned ones.
	Dynamic []string
}

// tuned are the settings of a server that serves one machine. The stock limits are made for clusters.
var tuned = []string{
	"history.transferProcessorMaxPollRPS=100000",
	"history.timerProcessorMaxPollRPS=100000",
	"history.visibilityProcessorMaxPollRPS=100000",
	"frontend.rps=100000",
	"frontend.namespaceRPS=100000",
	"matching.rps=100000",
	"history.rps=100000",
	"history.persistenceMaxQPS=100000",
	"matching.persistenceMaxQPS=100000",
	"matching.numTaskqueueReadPartitions=1",
	"matching.numTaskqueueWritePartitions=1",
	`history.timerProcessorMaxTimeShift="10ms"`,
	"system.enableActivityEagerExecution=true",
}

func (o Options) args() []string {
	args := []string{
		"server", "start-dev", "--disable-config-file", "--disable-config-env", "--color", "never",
		"--ip", host, "--port", strconv.Itoa(o.Port), "--namespace", o.Namespace,
	}
	if o.Headless {
		args = append(args, "--headless")
	} else {
		args = append(args, "--ui-port", strconv.Itoa(o.UIPort))
	}
	if o.DBFile != "" {
		args = append(args, "--db-filename", o.DBFile, "--sqlite-pragma", "journal_mode=wal", "--sqlite-pragma", "synchronous=2")
	}
	set := make(map[string]bool)
	for _, d := range o.Dynamic {
		key, _, _ := strings.Cut(d, "=")
		set[key] = true
		args = append(args, "--dynamic-config-value", d)
	}
	for _, d := range tuned {
		if key, _, _ := strings.Cut(d, "="); !set[key] {
			args = append(args, "--dynamic-config-value", d)
		}
	}
	return args
}

// A PortError reports a port that something else listens on.
type PortError struct {
	Port int
	UI   bool // it was meant for the Web UI
}

func (e *PortError) Error() string {
	what, flag := "the Temporal server", "--port"
	if e.UI {
		what, flag = "the Web UI", "--ui-port"
	}
	return fmt.Sprintf("port %d for %s is in use on %s: stop what listens there or choose another with %s", e.Port, what, host, flag)
}

// choosePorts fills in free ports and reports a taken one. Between here and the server's own listen
// somebody can still take it; then the server dies at once and says so.
func (o *Options) choosePorts() error {
	var err error
	if o.Port, err = choosePort(o.Port, false); err != nil || o.Headless {
		return err
	}
	if o.UIPort != 0 && o.UIPort == o.Port {
		return fmt.Errorf("port %d cannot serve both the Temporal server and the Web UI: choose another with --ui-port", o.Port)
	}
	o.UIPort, err = choosePort(o.UIPort, true)
	return err
}

func choosePort(port int, ui bool) (int, error) {
	if port < 0 || port > 65535 {
		return 0, fmt.Errorf("port %d: want 1 to 65535, or 0 for a free one", port)
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		if port == 0 {
			return 0, fmt.Errorf("no free port on %s: %w", host, err)
		}
		return 0, &PortError{Port: port, UI: ui}
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// environ is our environment without Temporal's own variables, which are meant for clients.
func environ() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "TEMPORAL_") {
			env = append(env, kv)
		}
	}
	return env
}
