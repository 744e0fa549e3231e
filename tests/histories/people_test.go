package histories

import (
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/approval/signature"
)

// A person is an approver. The key is thrown away from the start: it follows from the name.
type person string

const (
	alice person = "alice"
	bob   person = "bob"
)

func (p person) key() (ssh.Signer, error) {
	seed := sha256.Sum256([]byte("a key that proves nothing: " + p))
	return ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(seed[:]))
}

// on returns what somebody decides about a request, unsigned.
func (p person) on(a agent.Approval, c agent.Choice) agent.ApprovalDecision {
	return agent.ApprovalDecision{ID: a.ID, Digest: a.Action, Choice: c, Approver: string(p), Reason: "recorded"}
}

// policy is the scene's, with its people.
func (s *stage) policy() string {
	s.t.Helper()
	var people []string
	for _, p := range s.scene.people {
		key, err := p.key()
		if err != nil {
			s.t.Fatal(err)
		}
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key.PublicKey())))
		people = append(people, fmt.Sprintf("%s: {keys: [%q]}", p, line))
	}
	return cmp.Or(s.scene.policy, anything) + ", approvers: {" + strings.Join(people, ", ") + "}"
}

// sign returns a person's signature of the bytes of a statement.
func (s *stage) sign(p person, b []byte) string {
	s.t.Helper()
	key, err := p.key()
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := signature.Sign(key, b)
	if err != nil {
		s.t.Fatal(err)
	}
	return text
}

// signed returns a decision with the signature of a person's key.
func (s *stage) signed(p person, d agent.ApprovalDecision) agent.ApprovalDecision {
	s.t.Helper()
	d.Time = time.Now().UTC()
	d.Signature = s.sign(p, approval.DecisionBytes(s.scope(), d))
	return d
}

// scope returns the session's.
func (s *stage) scope() agent.Scope {
	s.t.Helper()
	var scope agent.Scope
	s.eventually("the session says who it is", func() bool {
		v, err := query[agent.SessionView](s, s.id(0), agent.QuerySession)
		scope = v.Scope
		return err == nil
	})
	return scope
}

// asks waits until n requests of a workflow wait and returns them.
func (s *stage) asks(turn, n int) []agent.Approval {
	s.t.Helper()
	var out []agent.Approval
	s.eventually(fmt.Sprintf("%d requests wait", n), func() bool {
		v, err := query[agent.ApprovalsView](s, s.id(turn), agent.QueryApprovals)
		out = nil
		for _, a := range v.Approvals {
			if a.Outcome == agent.OutcomePending {
				out = append(out, a)
			}
		}
		return err == nil && len(out) == n
	})
	return out
}

// given waits until the turn's only request has n approvals.
func (s *stage) given(turn, n int) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%d have approved", n), func() bool { return len(s.asks(turn, 1)[0].Decisions) == n })
}

// becomes waits until a request of a turn has ended so.
func (s *stage) becomes(turn int, id string, o agent.Outcome) {
	s.t.Helper()
	s.eventually(id+" is "+string(o), func() bool {
		v, err := query[agent.ApprovalsView](s, s.id(turn), agent.QueryApprovals)
		for _, a := range v.Approvals {
			if a.ID == id && a.Outcome == o {
				return err == nil
			}
		}
		return false
	})
}

// decide sends decisions in their order.
func (s *stage) decide(turn int, decisions ...agent.ApprovalDecision) {
	s.t.Helper()
	for _, d := range decisions {
		s.signal(s.id(turn), agent.SignalApproval, d)
	}
}

// approve signs what is the turn's only request, by each of the people.
func (s *stage) approve(turn int, people ...person) {
	s.t.Helper()
	a := s.asks(turn, 1)[0]
	for _, p := range people {
		s.decide(turn, s.signed(p, p.on(a, agent.ChoiceApprove)))
	}
}

// doubt waits until the outcome of an effect of a turn, or of its ended turns for the session, is uncertain.
func (s *stage) doubt(turn int) agent.Effect {
	s.t.Helper()
	return s.effect(turn, "is uncertain", func(e agent.Effect) bool { return e.State == agent.StateUncertain })
}

// contradicts waits until what is known of an effect contradicts itself.
func (s *stage) contradicts(turn int) agent.Effect {
	s.t.Helper()
	return s.effect(turn, "contradicts itself", func(e agent.Effect) bool { return e.Conflict != "" })
}

func (s *stage) effect(turn int, what string, is func(agent.Effect) bool) agent.Effect {
	s.t.Helper()
	var out agent.Effect
	s.eventually("an effect "+what, func() bool {
		v, err := query[agent.EffectsView](s, s.id(turn), agent.QueryEffects)
		for _, e := range v.Effects {
			if is(e) {
				out = e
				return err == nil
			}
		}
		return false
	})
	return out
}

// settle says what an effect came to, signed.
func (s *stage) settle(turn int, p person, e agent.Effect, outcome agent.State) {
	s.t.Helper()
	x := agent.Settlement{Key: e.Key, Outcome: outcome, Evidence: "the service's books say so", Approver: string(p), Time: time.Now().UTC()}
	x.Signature = s.sign(p, approval.SettlementBytes(s.scope(), x))
	s.signal(s.id(turn), agent.SignalSettle, x)
}

// resolved waits until the session has nothing left for a person to look at.
func (s *stage) resolved() {
	s.t.Helper()
	s.eventually("the session has nothing unresolved", func() bool {
		v, err := query[agent.SessionView](s, s.id(0), agent.QuerySession)
		return err == nil && len(v.Unresolved) == 0
	})
}
