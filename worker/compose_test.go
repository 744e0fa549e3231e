package worker_test

import (
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"go.temporal.io/sdk/contrib/envconfig"

	"github.com/holdfast-run/holdfast/starter"
	"github.com/holdfast-run/holdfast/worker"
)

// A service is what of docker-compose.yml is held against something else in this repository.
type service struct {
	Image       string
	Build       string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
	Environment map[string]string
	Command     []string
	Entrypoint  []string
	Volumes     []string
	Ports       []string
	Healthcheck *struct {
		Test    []string
		Disable bool
	}
	Restart         string
	StopGracePeriod string `yaml:"stop_grace_period"`
}

type compose struct {
	Services map[string]service
	Volumes  map[string]any
}

const root = ".."

func readCompose(t *testing.T) compose {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var c compose
	if err := yaml.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	for _, s := range c.Services {
		for k, v := range s.Environment {
			s.Environment[k] = expand(v)
		}
	}
	return c
}

var variable = regexp.MustCompile(`\$\{\w+(?::?-([^}]*))?\}`)

// expand gives variables the value that they have when nobody sets them.
func expand(s string) string { return variable.ReplaceAllString(s, "$1") }

func TestComposePinsEveryImage(t *testing.T) {
	t.Parallel()
	version := regexp.MustCompile(`:[0-9]+\.[0-9]+(\.[0-9]+)?(-[a-z0-9.]+)?$`)
	c := readCompose(t)
	for name, s := range c.Services {
		if s.Build == "" && !version.MatchString(s.Image) {
			t.Errorf("service %s: image %q has no version", name, s.Image)
		}
	}
	tag := func(name string) string { _, tag, _ := strings.Cut(c.Services[name].Image, ":"); return tag }
	for _, name := range []string{"schema", "namespace"} {
		if tag(name) != tag("temporal") {
			t.Errorf("service %s has version %s, the server %s: the schema would not fit", name, tag(name), tag("temporal"))
		}
	}
}

func TestComposePublishesNothingToOtherMachines(t *testing.T) {
	t.Parallel()
	for name, s := range readCompose(t).Services {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("service %s publishes %q on every address", name, p)
			}
		}
	}
}

func TestComposeWaitsForWhatIsThere(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	for name, s := range c.Services {
		for on, d := range s.DependsOn {
			other, ok := c.Services[on]
			switch {
			case !ok:
				t.Errorf("service %s depends on %q, which is not there", name, on)
			case d.Condition == "service_healthy" && other.Healthcheck == nil:
				t.Errorf("service %s waits for the health of %s, which has no check", name, on)
			case d.Condition == "service_completed_successfully" && !strings.HasPrefix(other.Restart, "on-failure"):
				t.Errorf("service %s waits for the end of %s, which is restarted", name, on)
			}
		}
	}
}

func TestComposeMountsWhatIsInTheRepository(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(from, "./") {
				if _, ok := c.Volumes[from]; !ok {
					t.Errorf("service %s: volume %q is not declared", name, from)
				}
				continue
			}
			path := filepath.Join(root, from)
			if _, err := os.Stat(path); err != nil {
				t.Errorf("service %s mounts %q: %v", name, from, err)
				continue
			}
			if strings.HasSuffix(path, ".sh") {
				if out, err := exec.Command("sh", "-n", path).CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", path, err, out)
				}
			}
		}
	}
}

// parses says whether the binary takes these arguments, without running them.
func parses(t *testing.T, args []string) {
	t.Helper()
	cmd, rest, err := starter.NewRoot(&starter.App{Out: io.Discard, Err: io.Discard}).Find(args)
	if err != nil {
		t.Errorf("holdfast %s: %v", strings.Join(args, " "), err)
		return
	}
	if err := cmd.ParseFlags(rest); err != nil {
		t.Errorf("holdfast %s: %v", strings.Join(args, " "), err)
		return
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		t.Errorf("holdfast %s: %v", strings.Join(args, " "), err)
	}
	if cmd.HasSubCommands() {
		t.Errorf("holdfast %s: names no command", strings.Join(args, " "))
	}
}

func TestComposeRunsCommandsThatTheBinaryHas(t *testing.T) {
	t.Parallel()
	ours := 0
	for name, s := range readCompose(t).Services {
		if s.Build == "" {
			continue
		}
		ours++
		if len(s.Entrypoint) > 0 {
			t.Errorf("service %s replaces the image's entrypoint", name)
		}
		parses(t, s.Command)
	}
	if ours != 2 {
		t.Errorf("%d services run the binary, want setup and worker", ours)
	}
	for _, line := range composeComments(t) {
		parses(t, line)
	}
}

// composeComments returns the holdfast commands that comments tell people to type.
func composeComments(t *testing.T) [][]string {
	t.Helper()
	command := regexp.MustCompile(`exec worker holdfast ([^"\n]+(?:"[^"\n]*")?)`)
	var out [][]string
	for _, name := range []string{"docker-compose.yml", "deploy/holdfast.yaml"} {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range command.FindAllStringSubmatch(string(b), -1) {
			out = append(out, strings.Fields(strings.TrimSuffix(m[1], `"`)))
		}
	}
	if len(out) == 0 {
		t.Error("no command found in comments: the pattern is out of date")
	}
	return out
}

func TestComposeReachesTemporalByVariablesThatAreRead(t *testing.T) {
	t.Parallel()
	c := readCompose(t)
	var want string
	for _, name := range []string{"setup", "worker", "namespace"} {
		env := c.Services[name].Environment
		o, err := envconfig.LoadClientOptions(envconfig.LoadClientOptionsRequest{
			DisableFile: true, EnvLookup: lookup(env),
		})
		if err != nil {
			t.Fatal(err)
		}
		host, port, err := net.SplitHostPort(o.HostPort)
		if _, ok := c.Services[host]; err != nil || !ok || port != "7233" {
			t.Errorf("service %s would connect to %q", name, o.HostPort)
		}
		if want == "" {
			want = o.Namespace
		}
		if o.Namespace != want || want == "" {
			t.Errorf("service %s would use namespace %q, another one %q", name, o.Namespace, want)
		}
		for k := range env {
			if strings.HasPrefix(k, "TEMPORAL_") && k != "TEMPORAL_ADDRESS" && k != "TEMPORAL_NAMESPACE" {
				t.Errorf("service %s sets %s, which nothing here checks", name, k)
			}
		}
	}
}

type lookup map[string]string

func (l lookup) Environ() []string {
	var out []string
	for k, v := range l {
		out = append(out, k+"="+v)
	}
	return out
}

func (l lookup) LookupEnv(k string) (string, bool) { v, ok := l[k]; return v, ok }

func TestComposeWorkerAndItsConfigurationFitTogether(t *testing.T) {
	t.Parallel()
	s := readCompose(t).Services["worker"]
	i := slices.Index(s.Command, "--config")
	if i < 0 || i+1 >= len(s.Command) {
		t.Fatalf("the worker's command names no configuration: %q", s.Command)
	}
	mounts := map[string]string{}
	for _, v := range s.Volumes {
		part := strings.Split(v, ":")
		mounts[part[1]] = part[0]
	}
	// Somebody who starts it sets the key; only variables that compose hands over may be referred to.
	if _, ok := s.Environment["OPENAI_API_KEY"]; !ok {
		t.Error("the key of the model does not reach the worker")
	}
	s.Environment["OPENAI_API_KEY"] = "sk-for-the-test"
	c, err := worker.LoadWith(filepath.Join(root, mounts[s.Command[i+1]]), s.Environment)
	if err != nil {
		t.Fatal(err)
	}
	mounted := false
	for to, from := range mounts {
		mounted = mounted || !strings.HasPrefix(from, "./") && strings.HasPrefix(c.Store.URL, "file://"+to+"/")
	}
	if !mounted {
		t.Errorf("the store %s is in no volume: it would go with the container", c.Store.URL)
	}
	host, port, err := net.SplitHostPort(c.Worker.Health)
	if err != nil || host != "0.0.0.0" {
		t.Errorf("health address %q cannot be reached from outside the container", c.Worker.Health)
	}
	if url := s.Healthcheck.Test[len(s.Healthcheck.Test)-1]; url != "http://127.0.0.1:"+port+"/readyz" {
		t.Errorf("the health check asks %q, the worker answers at %q", url, c.Worker.Health)
	}
	if !slices.ContainsFunc(s.Ports, func(p string) bool { return strings.HasSuffix(p, ":"+port) }) {
		t.Errorf("ports %q do not have the health port %s", s.Ports, port)
	}
	grace, err := time.ParseDuration(s.StopGracePeriod)
	if err != nil || grace <= c.Worker.StopTimeout {
		t.Errorf("stop_grace_period %q is not above stop_timeout %s: activities would be killed", s.StopGracePeriod, c.Worker.StopTimeout)
	}
}

func TestDockerfileFitsTheModuleAndTheBinary(t *testing.T) {
	t.Parallel()
	docker := readText(t, "Dockerfile")
	mod := readText(t, "go.mod")
	needs := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(mod)[1]
	if !strings.Contains(docker, "FROM golang:"+needs+".") {
		t.Errorf("the Dockerfile does not build with Go %s, which go.mod asks for", needs)
	}
	for _, from := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(docker, -1) {
		if !regexp.MustCompile(`:[0-9]+\.[0-9]+\.[0-9]+(-[a-z0-9.]+)?$`).MatchString(from[1]) {
			t.Errorf("image %q has no full version", from[1])
		}
	}
	if !regexp.MustCompile(`(?m)^USER [1-9][0-9]*:[1-9][0-9]*$`).MatchString(docker) {
		t.Error("the image does not run as a user other than root, by number")
	}
	var args []string
	m := regexp.MustCompile(`(?m)^CMD (\[.*\])$`).FindStringSubmatch(docker)
	if m == nil || yaml.Unmarshal([]byte(m[1]), &args) != nil {
		t.Fatal("the image has no command")
	}
	parses(t, args)
	c := readCompose(t).Services["worker"]
	if check := c.Healthcheck.Test[len(c.Healthcheck.Test)-1]; !strings.Contains(docker, `"`+check+`"`) {
		t.Errorf("image and compose ask for health in different places; compose: %q", check)
	}
}

func readText(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestExamplesAreValidConfigurations(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "examples", "*", "holdfast.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("found %q, %v", files, err)
	}
	env := map[string]string{"OPENAI_API_KEY": "sk-for-the-test", "PAYMENTS_TOKEN": "token-for-the-test", "HOME": "/home/test"}
	for _, f := range files {
		if _, err := worker.LoadWith(f, env); err != nil {
			t.Error(err)
		}
	}
}
