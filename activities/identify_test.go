package activities

import (
	"crypto/ed25519"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/approval"
	"github.com/holdfast-run/holdfast/approval/signature"
	"github.com/holdfast-run/holdfast/policy"
)

func TestAMessageIsFromWhomItsSignatureProves(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "mem://")
	w.governed(policy.Config{Approvers: map[string]policy.Approver{"alice": {Keys: []policy.Key{{Key: key.PublicKey()}}}}})
	signed := agent.Message{ID: "m1", Text: "pay", From: "alice", Time: time.Now()}
	if signed.Signature, err = signature.Sign(key, approval.MessageBytes(w.scope.Session, signed)); err != nil {
		t.Fatal(err)
	}
	changed := signed
	changed.Text = "pay twice"
	other := signed
	other.From = "bob"
	for _, c := range []struct {
		name string
		m    agent.Message
		want agent.Actor
		bad  bool
	}{
		{"signed", signed, agent.Actor{Name: "alice", Signed: true}, false},
		{"claimed", agent.Message{Text: "pay", From: "alice"}, agent.Actor{Name: "alice"}, false},
		{"nobody", agent.Message{Text: "pay"}, agent.Actor{}, false},
		{"another text", changed, agent.Actor{}, true},
		{"another sender", other, agent.Actor{}, true},
	} {
		got, err := local[agent.Actor](t, w.Identify, agent.IdentifyInput{Scope: w.scope, Message: c.m, Serial: 3})
		opened, errOpen := local[agent.OpenResult](t, w.Open, agent.OpenInput{Scope: w.scope, Turn: 1, Agent: "clerk", Message: c.m, Serial: 3})
		if c.bad {
			wantApp(t, err, agent.ErrMessage, true)
			wantApp(t, errOpen, agent.ErrMessage, true)
			continue
		}
		if err != nil || errOpen != nil || got != c.want || opened.Sender != c.want {
			t.Errorf("%s: steering is from %+v (%v), the turn's message from %+v (%v), want %+v", c.name, got, err, opened.Sender, errOpen, c.want)
		}
	}
}
