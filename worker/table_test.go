package worker

import (
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"github.com/holdfast-run/holdfast/agent"
	"github.com/holdfast-run/holdfast/versioning"
)

func TestABuildSaysWhatItUnderstands(t *testing.T) {
	t.Parallel()
	c := converter.GetDefaultDataConverter()
	own := OwnTable()
	for _, kind := range []string{agent.WorkflowSession, agent.WorkflowTurn} {
		if r := versioning.Bounds(kind); own.Numbers[kind] != r {
			t.Errorf("%s: %+v, want %+v", kind, own.Numbers[kind], r)
		}
	}
	p, err := c.ToPayload(own)
	if err != nil {
		t.Fatal(err)
	}
	if got := ReadTable(c, p); got == nil || !got.equal(own) {
		t.Errorf("read back as %+v", got)
	}
	for name, data := range map[string]string{
		"nothing":   ``,
		"no JSON":   `{`,
		"a text":    `"x"`,
		"no types":  `{"binary":"x"}`,
		"no order":  `{"numbers":{"Turn":{"oldest":3,"newest":1,"preferred":2}}}`,
		"nought":    `{"numbers":{"Turn":{"oldest":0,"newest":1,"preferred":1}}}`,
		"too large": `{"binary":"` + strings.Repeat("x", maxTable) + `","numbers":{"Turn":{"oldest":1,"newest":1,"preferred":1}}}`,
	} {
		if got := ReadTable(c, &commonpb.Payload{Metadata: p.GetMetadata(), Data: []byte(data)}); got != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if ReadTable(c, nil) != nil || ReadTable(c, &commonpb.Payload{Data: p.GetData()}) != nil {
		t.Error("a table out of nothing")
	}
}

func FuzzTable(f *testing.F) {
	f.Add([]byte("json/plain"), []byte(`{"binary":"b","numbers":{"Turn":{"oldest":1,"newest":3,"preferred":2}}}`))
	f.Add([]byte("binary/null"), []byte(nil))
	f.Fuzz(func(t *testing.T, encoding, data []byte) {
		table := ReadTable(converter.GetDefaultDataConverter(), &commonpb.Payload{Metadata: map[string][]byte{"encoding": encoding}, Data: data})
		if table != nil && !table.valid() {
			t.Errorf("%+v", table)
		}
	})
}
