package deploy

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/holdfast-run/holdfast/versioning/replay"
)

func marshal(t *testing.T, h *historypb.History) []byte {
	t.Helper()
	b, err := protojson.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func putFile(t *testing.T, dir, name string, b []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestFilesFoldersAndStandardInputAreReplayed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	turn, session := marshal(t, recordedRun(t, "turn-done")), marshal(t, recordedRun(t, "session-settles"))
	a := putFile(t, dir, "a.history", turn)
	putFile(t, dir, "folder/deep/b.JSON", session)
	putFile(t, dir, "folder/c.json", turn)
	putFile(t, dir, "folder/notes.txt", []byte("no history"))
	if err := os.Mkdir(filepath.Join(dir, "folder", "empty.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(a, filepath.Join(dir, "folder", "link.json")); err != nil {
		t.Skip("no symbolic links here")
	}
	g := Gate{Register: register, Stdin: bytes.NewReader(session)}
	sources := map[string]Item{}
	folder := filepath.Join(dir, "folder")
	r, err := g.Files(context.Background(), []string{a, folder, filepath.Join(folder, "c.json"), folder + "/./c.json", "-"}, func(i Item) { sources[i.Source] = i })
	if err != nil || !r.OK() {
		t.Fatalf("%v, %+v", err, r)
	}
	if r.Total != 5 || len(sources) != 5 {
		t.Errorf("%d histories, want 5: %v", r.Total, sources)
	}
	if i := sources["-"]; i.Workflow == "" || i.Type != "Session" || i.Run == "" || !i.Fetched || i.Info != nil {
		t.Errorf("standard input: %+v", i)
	}
}

func TestAFileThatCannotBeReadIsUnreadAndNotPassed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := putFile(t, dir, "good.json", marshal(t, recordedRun(t, "turn-done")))
	bad := putFile(t, dir, "bad.json", []byte(`{"events":[`))
	missing := filepath.Join(dir, "missing.json")
	r, err := Gate{Register: register}.Files(context.Background(), []string{good, bad, missing, "-"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{bad: "it ends early", missing: "no such file", "-": "no standard input"}
	if r.OK() || r.Replayed() != 1 || r.Total != 4 || len(r.Unread) != len(want) {
		t.Errorf("report %+v", r)
	}
	for _, u := range r.Unread {
		if !strings.Contains(u.Reason, want[u.Source]) || strings.Contains(u.Reason, dir) {
			t.Errorf("%s: %s", u.Source, u.Reason)
		}
	}
}

func TestNothingToReplayIsOKAndNothing(t *testing.T) {
	t.Parallel()
	r, err := Gate{Register: register}.Files(context.Background(), []string{t.TempDir()}, nil)
	if err != nil || !r.OK() || r.Total != 0 || r.Replayed() != 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

// encode lets a codec encode what workflow code would be given.
func encode(t *testing.T, h *historypb.History, codec converter.PayloadCodec) {
	t.Helper()
	for _, e := range h.GetEvents() {
		err := replay.Payloads(e, func(p *commonpb.Payload) error {
			out, err := codec.Encode([]*commonpb.Payload{p})
			if err == nil {
				p.Metadata, p.Data = out[0].GetMetadata(), out[0].GetData()
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnEncodedHistoryIsDecodedOrReportedAsSuch(t *testing.T) {
	t.Parallel()
	codec := converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true})
	h := recordedRun(t, "turn-reads-parallel")
	encode(t, h, codec)
	file := putFile(t, t.TempDir(), "encoded.json", marshal(t, h))
	g := Gate{Register: register}
	r, err := g.Files(context.Background(), []string{file}, nil)
	if err != nil || r.OK() || len(r.Unread) != 1 || !strings.Contains(r.Unread[0].Reason, "TEMPORAL_CODEC_ENDPOINT") {
		t.Errorf("without the codec: %v, %+v", err, r)
	}
	g.Payloads = converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), codec)
	if r, err = g.Files(context.Background(), []string{file}, nil); err != nil || !r.OK() || r.Replayed() != 1 {
		t.Errorf("with it: %v, %+v", err, r)
	}
	g.Payloads = converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), failingCodec{})
	r, err = g.Files(context.Background(), []string{file}, nil)
	if err != nil || r.OK() || len(r.Unread) != 1 || !strings.Contains(r.Unread[0].Reason, "the key is gone") {
		t.Errorf("with one that fails: %v, %+v", err, r)
	}
}

type failingCodec struct{ converter.PayloadCodec }

func (failingCodec) Decode([]*commonpb.Payload) ([]*commonpb.Payload, error) {
	return nil, errors.New("the key is gone")
}

// A cupboard keeps payloads as the workers' store does.
type cupboard struct {
	converter.StorageDriver
	kept map[string]*commonpb.Payload
}

func (cupboard) Name() string { return "holdfast" }

func (s cupboard) Retrieve(_ converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	p := s.kept[claims[0].ClaimData["object"]]
	if p == nil {
		return nil, errors.New("there is no such object")
	}
	return []*commonpb.Payload{p}, nil
}

// store puts the inputs of activities into the cupboard, as the SDK does.
func (s cupboard) store(t *testing.T, h *historypb.History) {
	t.Helper()
	for _, e := range h.GetEvents() {
		for _, p := range e.GetActivityTaskScheduledEventAttributes().GetInput().GetPayloads() {
			name := e.GetEventType().String() + string(rune('a'+len(s.kept)))
			s.kept[name] = &commonpb.Payload{Metadata: p.GetMetadata(), Data: p.GetData()}
			b, err := protojson.Marshal(&sdkpb.ExternalStorageReference{DriverName: "holdfast", ClaimData: map[string]string{"object": name}})
			if err != nil {
				t.Fatal(err)
			}
			p.Data = b
			p.Metadata = map[string][]byte{"encoding": []byte("json/protobuf"), "messageType": []byte("temporal.api.sdk.v1.ExternalStorageReference")}
		}
	}
}

func TestWhatLiesInTheWorkersStoreIsReadThereOrReportedAsSuch(t *testing.T) {
	t.Parallel()
	s := cupboard{kept: map[string]*commonpb.Payload{}}
	h := recordedRun(t, "turn-reads-parallel")
	s.store(t, h)
	dir := t.TempDir()
	one, two := putFile(t, dir, "1.json", marshal(t, h)), putFile(t, dir, "2.json", marshal(t, h))
	var opened atomic.Int64
	var openError error
	g := Gate{Register: register, Stored: func(context.Context) (converter.StorageDriver, error) {
		opened.Add(1)
		return s, openError
	}}
	if r, err := g.Files(context.Background(), []string{one, two}, nil); err != nil || !r.OK() || r.Replayed() != 2 || opened.Load() != 1 {
		t.Errorf("%v, %+v, opened %d times", err, r, opened.Load())
	}
	unread := func(why string) {
		t.Helper()
		r, err := g.Files(context.Background(), []string{one}, nil)
		if err != nil || r.OK() || len(r.Unread) != 1 || !strings.Contains(r.Unread[0].Reason, "kept in the workers' store") || !strings.Contains(r.Unread[0].Reason, why) {
			t.Errorf("%v, %+v; want %q", err, r, why)
		}
	}
	openError = errors.New("the bucket is not yours")
	unread("the bucket is not yours")
	openError = nil
	for name := range s.kept {
		delete(s.kept, name)
	}
	unread("there is no such object")
	g.Stored = nil
	unread("no store is named here")
}

// What was stored had been encoded before.
func TestWhatWasEncodedAndStoredComesBack(t *testing.T) {
	t.Parallel()
	codec := converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true})
	s := cupboard{kept: map[string]*commonpb.Payload{}}
	h := recordedRun(t, "turn-done")
	encode(t, h, codec)
	s.store(t, h)
	g := Gate{
		Register: register, Payloads: converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), codec),
		Stored: func(context.Context) (converter.StorageDriver, error) { return s, nil },
	}
	r, err := g.Files(context.Background(), []string{putFile(t, t.TempDir(), "h.json", marshal(t, h))}, nil)
	if err != nil || !r.OK() || r.Replayed() != 1 {
		t.Errorf("%v, %+v", err, r)
	}
}

// FuzzReference holds that a reference, which comes from a history, is read or refused.
func FuzzReference(f *testing.F) {
	f.Add("json/protobuf", []byte(`{"driverName":"holdfast","claimData":{"object":"x"}}`))
	f.Add("json/external-storage-reference", []byte(`{"driver_name":"holdfast","driver_claim":{"claim_data":{"object":"x"}}}`))
	f.Add("json/protobuf", []byte(`[`))
	f.Fuzz(func(t *testing.T, encoding string, data []byte) {
		p := &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte(encoding)}, Data: data}
		_, _, _ = reference(p)
		found := (&payloads{open: func() (converter.StorageDriver, error) { return cupboard{}, nil }}).retrieve(t.Context(), p)
		if found == nil {
			t.Error("an empty cupboard has given something")
		}
	})
}
