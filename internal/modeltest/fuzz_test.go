package modeltest

import (
	"encoding/json"
	"testing"
)

// FuzzRender proves that any message can be played, streamed and plain, whatever it holds.
func FuzzRender(f *testing.F) {
	f.Add(`{"content":"a","tool_calls":[{"function":{"arguments":"{\"x\":1}"}}]}`, "$PAD:3")
	f.Add(`{"content":5,"tool_calls":[null,1,{"function":{"arguments":{}}}]}`, "$RAW:ff $DEEP:2")
	f.Add(`[]`, "$PAD:99999999999999999999")
	f.Fuzz(func(t *testing.T, message, line string) {
		if !json.Valid([]byte(message)) || len(line) > 20 {
			t.Skip()
		}
		for _, stream := range []bool{true, false} {
			q := Request{Model: "m", Stream: stream}
			for _, s := range []Step{{Message: json.RawMessage(message)}, {Body: json.RawMessage(message)}, {SSE: []string{line}, Done: stream}} {
				if p := render(s, q); len(p.pieces()) == 0 || p.status != 200 {
					t.Errorf("%+v is played as %+v", s, p)
				}
			}
		}
	})
}

// FuzzJudge proves that any request is judged without a panic, and that a bad one is found.
func FuzzJudge(f *testing.F) {
	f.Add(`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"arguments":"{}"}}]},{"role":"tool","tool_call_id":"a"}]}`)
	f.Add(`{"messages":[null,5]}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, body string) {
		if q := judge([]byte(body)); len(q.Messages) == 0 && len(q.Breaches) == 0 {
			t.Errorf("%q passes", body)
		}
	})
}
