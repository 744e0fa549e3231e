package activities

import (
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/internal/openai"
	"github.com/holdfast-run/holdfast/internal/secret"
	"github.com/holdfast-run/holdfast/policy"
	"github.com/holdfast-run/holdfast/store"
	"github.com/holdfast-run/holdfast/tool"
	"github.com/holdfast-run/holdfast/transcript"
)

// Defaults of a [Model] and a [Snapshot].
const (
	DefaultAttempt   = 5 * time.Minute
	DefaultCall      = 15 * time.Minute
	DefaultHeartbeat = 30 * time.Second
	DefaultMaxResult = 48 << 10
)

// A Model is one model of the configuration.
type Model struct {
	Name string
	// Version is what [agent.Definition] has as ModelVersion.
	Version agent.Digest
	Client  *openai.Client
	Price   Price
	// Attempt bounds one request; 0 is [DefaultAttempt].
	Attempt time.Duration
	// Call bounds how long a call is tried again, counted from its first trouble; 0 is
	// [DefaultCall].
	Call time.Duration
	// Heartbeat is how long an attempt may be silent before another takes over; 0 is
	// [DefaultHeartbeat].
	Heartbeat time.Duration
	// Concurrent bounds the requests that this process has open at the model; 0 is no bound.
	Concurrent int
}

// A Price is what a model costs per million tokens, in whole units of some currency.
type Price struct {
	Input       float64
	CachedInput float64 // 0 means that cached tokens cost what others do
	Output      float64
}

// Micros returns the cost of u in millionths of the currency's unit.
func (p Price) Micros(u agent.Usage) int64 {
	cached := p.CachedInput
	if cached == 0 {
		cached = p.Input
	}
	// A token costs price/1e6 units, which is price millionths.
	return int64(float64(u.Input-u.Cached)*p.Input + float64(u.Cached)*cached + float64(u.Output)*p.Output + 0.5)
}

// A Snapshot is the operator's configuration at one moment. It is not changed once it is handed out.
type Snapshot struct {
	Serial int64
	Agents map[string]agent.Definition
	// Upgrades says by agent what becomes of a session whose last turn had another definition; an agent that is not
	// here follows. It is looked at where the work is done, not where a turn was opened.
	Upgrades map[string]agent.Upgrade
	Models   map[string]Model
	Tools    *tool.Set
	Policy   *policy.Policy
	Mask     *secret.Mask // nil masks nothing
	// ToolHeartbeat is what the workflow sets as heartbeat timeout of a tool call.
	ToolHeartbeat time.Duration
	// MaxResult bounds in bytes what a model is shown of one tool result; 0 is [DefaultMaxResult].
	MaxResult int64

	defineOnce sync.Once
	byDigest   map[string]agent.Definition
}

// defined returns the agents by the first 16 digits of their definition's digest, which every activity looks
// one up by.
func (s *Snapshot) defined() map[string]agent.Definition {
	s.defineOnce.Do(func() {
		s.byDigest = map[string]agent.Definition{}
		for _, def := range s.Agents {
			if _, digest, err := encoded(def); err == nil {
				s.byDigest[digest.Short()] = def
			}
		}
	})
	return s.byDigest
}

// newer is the serial of the configuration, 0 if whoever asks has seen it.
func (s *Snapshot) newer(seen int64) int64 {
	if s.Serial > seen {
		return s.Serial
	}
	return 0
}

func (s *Snapshot) maxResult() int {
	if s.MaxResult <= 0 {
		return DefaultMaxResult
	}
	return int(s.MaxResult)
}

// Deps are what the activities need; all but Build are required.
type Deps struct {
	Store   *store.Store
	Log     *transcript.Log
	Current func() *Snapshot // the configuration as it stands now; called once per activity
	Client  client.Client
	Build   string // the worker's build id
}

// Activities holds the activities of one worker. Its methods are safe for concurrent use.
type Activities struct {
	Deps
	slots slots
	kept  kept
}

// New returns the activities over d.
func New(d Deps) (*Activities, error) {
	switch {
	case d.Store == nil:
		return nil, fmt.Errorf("activities: no store")
	case d.Log == nil:
		return nil, fmt.Errorf("activities: no transcript log")
	case d.Current == nil:
		return nil, fmt.Errorf("activities: no configuration")
	case d.Client == nil:
		return nil, fmt.Errorf("activities: no Temporal client")
	}
	return &Activities{Deps: d}, nil
}

// Register registers the activities under their names in package agent.
func (a *Activities) Register(r worker.ActivityRegistry) {
	for name, fn := range map[string]any{
		agent.ActivityModel:     a.Model,
		agent.ActivityTool:      a.Tool,
		agent.ActivityReconcile: a.Reconcile,
		agent.ActivityRecover:   a.Recover,
		agent.ActivityOpen:      a.Open,
		agent.ActivityClose:     a.Close,
		agent.ActivityJudge:     a.Judge,
		agent.ActivitySettle:    a.Settle,
		agent.ActivityPlan:      a.Plan,
		agent.ActivityIdentify:  a.Identify,
		agent.ActivityFork:      a.Fork,
	} {
		r.RegisterActivityWithOptions(fn, activity.RegisterOptions{Name: name})
	}
}

// kept remembers which bodies this process has already put into which scope, so that a session's
// hundredth turn does not write the agent's definition again. It forgets everything when it is full:
// the write is idempotent.
type kept struct {
	mu   sync.Mutex
	seen map[string]bool
}

const maxKept = 10_000

func (k *kept) has(s agent.Scope, d agent.Digest) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen[s.String()+"/"+string(d)]
}

func (k *kept) add(s agent.Scope, d agent.Digest) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil || len(k.seen) >= maxKept {
		k.seen = map[string]bool{}
	}
	k.seen[s.String()+"/"+string(d)] = true
}
