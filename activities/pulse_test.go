package activities

import (
	"testing"
	"testing/synctest"
	"time"
)

// beating returns a pulse that notes what it sends.
func beating(sent *[]Progress) *pulse {
	return &pulse{attempt: 1, done: make(chan struct{}), beat: func(p Progress) { *sent = append(*sent, p) }}
}

func TestAnAttemptThatIsOverSoonSendsNoHeartbeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []Progress
		p := beating(&sent)
		p.wait.Go(func() { p.run(5 * time.Second) })
		p.phase("asking the model")
		p.bytes(10)
		time.Sleep(4 * time.Second)
		p.stop()
		if len(sent) != 0 {
			t.Errorf("sent %+v", sent)
		}
	})
}

func TestALongAttemptSaysWhatItIsDoing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent []Progress
		p := beating(&sent)
		p.wait.Go(func() { p.run(5 * time.Second) })
		p.phase("asking the model")
		time.Sleep(6 * time.Second)
		p.bytes(10)
		time.Sleep(5 * time.Second)
		p.stop()
		if len(sent) != 2 || sent[0].Phase != "asking the model" || sent[1].Bytes != 10 {
			t.Errorf("sent %+v", sent)
		}
	})
}

func TestATroubleIsSentAtOnce(t *testing.T) {
	t.Parallel()
	var sent []Progress
	p := beating(&sent)
	p.trouble()
	if len(sent) != 1 || sent[0].Troubles != 1 {
		t.Errorf("sent %+v: the next attempt would not know", sent)
	}
}
