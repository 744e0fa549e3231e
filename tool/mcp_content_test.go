package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestResultsBecomeTextOrTheBytesThemselves(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Result{
		`{}`:                            {},
		`{"content":null}`:              {},
		`{"content":[]}`:                {},
		`{"content":[{"type":"text"}]}`: {},
		`[]`:                            {Data: []byte(unreadable)},
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:                                        {Data: []byte("a\nb")},
		`{"content":{"type":"text","text":"alone"}}`:                                                                 {Data: []byte("alone")},
		`{"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1}}`:                                       {Data: []byte("t")},
		`{"content":[{"type":"text","text":""}],"structuredContent":{"a": 1}}`:                                       {Data: []byte(`{"a":1}`), Type: jsonType},
		`{"content":[],"structuredContent":{"b":1, "a":12345678901234567890.50}}`:                                    {Data: []byte(`{"b":1,"a":12345678901234567890.50}`), Type: jsonType},
		`{"content":[{"type":"image","mimeType":"image/png","data":"AAEC"}],"structuredContent":{"a":1}}`:            {Data: []byte("[image, image/png, 3 bytes]\n{\"a\":1}")},
		`{"content":[{"type":"image","mimeType":"image/png","data":"AAEC"}]}`:                                        {Data: []byte{0, 1, 2}, Type: "image/png"},
		`{"content":[{"type":"audio","mimeType":"a\nb","data":"AAEC"}]}`:                                             {Data: []byte{0, 1, 2}, Type: octets},
		`{"content":[{"type":"image","mimeType":"image/png","data":"%%%"}]}`:                                         {Data: []byte("[image, image/png, 3 bytes that are not base64]")},
		`{"content":[{"type":"resource","resource":{"uri":"file:///a","blob":"AAEC"}}]}`:                             {Data: []byte{0, 1, 2}, Type: octets},
		`{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/x","blob":"/w=="}}]}`:         {Data: []byte{0xff}, Type: octets},
		`{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"in it"}}]}`:                            {Data: []byte("[resource \"file:///a\"]\nin it")},
		`{"content":[{"type":"text","text":"x"},{"type":"resource","resource":{"uri":"u","blob":"AAEC"}}]}`:          {Data: []byte("x\n[resource \"u\", application/octet-stream, 3 bytes]")},
		`{"content":[{"type":"resource_link","uri":"http://x/","name":"n\u001b","mimeType":"text/plain","size":7}]}`: {Data: []byte(`[link "n\x1b" to "http://x/", text/plain, 7 bytes]`)},
		`{"content":[{"type":"hologram"},17,{"type":"resource"}]}`:                                                   {Data: []byte("[content of the unknown type \"hologram\"]\n[content that is not in the protocol's form]\n[content of the unknown type \"resource\"]")},
		"{\"content\":[{\"type\":\"text\",\"text\":\"a\xffb\\ud800c\"}]}":                                            {Data: []byte("a\uFFFDb\uFFFDc")},
		"{\"structuredContent\":\"a\xffb\"}":                                                                         {Data: []byte("\"a\uFFFDb\""), Type: jsonType},
	} {
		got, err := readResult(json.RawMessage(in), 1<<20)
		if err != nil || !bytes.Equal(got.Data, want.Data) || got.Type != want.Type {
			t.Errorf("%s\ngot  %q (%s), %v\nwant %q (%s)", in, got.Data, got.Type, err, want.Data, want.Type)
		}
	}
}

func TestErrorResultsAreTextForTheModel(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		`{"isError":true}`: noReason,
		`{"isError":true,"content":[{"type":"text","text":" no order 42\n"}]}`:                     "no order 42",
		`{"isError":true,"structuredContent":{"code":7}}`:                                          `{"code":7}`,
		`{"isError":true,"content":[{"type":"image","data":"AAEC"}]}`:                              noReason,
		`{"resultType":"input_required","inputRequests":{"a":{}}}`:                                 "the tool wants input from a person in the middle of the call, which is not supported",
		`{"isError":true,"content":[{"type":"text","text":"` + strings.Repeat("ä", 1<<15) + `"}]}`: strings.Repeat("ä", (maxErrorText-3)/2) + "...",
	} {
		if _, err := readResult(json.RawMessage(in), 1<<20); err == nil || err.Error() != want {
			t.Errorf("%.80s: got %.80v", in, err)
		}
	}
}

func TestResultsAreBounded(t *testing.T) {
	t.Parallel()
	big := base64.StdEncoding.EncodeToString(make([]byte, 1001))
	for _, in := range []string{
		`{"content":[{"type":"image","data":"` + big + `"}]}`,
		`{"content":[{"type":"text","text":"` + strings.Repeat("x", 600) + `"},{"type":"text","text":"` + strings.Repeat("y", 600) + `"}]}`,
		`{"structuredContent":"` + strings.Repeat("x", 1000) + `"}`,
	} {
		if _, err := readResult(json.RawMessage(in), 1000); !errors.Is(err, errAnswerTooLarge) {
			t.Errorf("%.60s: %v", in, err)
		}
	}
}

func FuzzMCPResult(f *testing.F) {
	f.Add([]byte(`{"content":[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png","data":"AAEC"}],"structuredContent":[1e999]}`))
	f.Add([]byte(`{"isError":true,"content":[{"type":"resource","resource":{"uri":"u","blob":"AA=="}}]}`))
	f.Add([]byte(`{"content":{"type":"resource_link","name":"\ud800","size":-1}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		const limit = 1 << 10
		res, err := readResult(raw, limit)
		if err != nil {
			if err.Error() == "" || !utf8.ValidString(err.Error()) || len(err.Error()) > maxErrorText+8 {
				t.Errorf("error %q", err)
			}
			return
		}
		if len(res.Data) > limit {
			t.Errorf("%d bytes", len(res.Data))
		}
		switch {
		case (res.Type == "" || res.Type == jsonType || strings.HasPrefix(res.Type, "text/")) && !utf8.Valid(res.Data):
			t.Errorf("%s that is not UTF-8: %q", res.Type, res.Data)
		case res.Type == jsonType && !json.Valid(res.Data):
			t.Errorf("no JSON: %q", res.Data)
		}
	})
}
