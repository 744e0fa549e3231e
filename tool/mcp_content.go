package tool

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"
)

var errAnswerTooLarge = errors.New("the server's answer is larger than the limit")

// A block is one piece of an MCP result's content. Only some of the fields belong to each type.
type block struct {
	Type     string  `json:"type"`
	Text     *string `json:"text"`
	Data     string  `json:"data"`
	MIMEType string  `json:"mimeType"`
	URI      string  `json:"uri"`
	Name     string  `json:"name"`
	Size     *int64  `json:"size"`
	Resource *struct {
		URI      string  `json:"uri"`
		MIMEType string  `json:"mimeType"`
		Text     *string `json:"text"`
		Blob     string  `json:"blob"`
	} `json:"resource"`
}

type wireResult struct {
	Content    json.RawMessage `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
	ResultType string          `json:"resultType"`
}

// readResult turns a tools/call result into ours: texts joined, structured content where there is no
// text, and for anything else a line that says what it is. Bytes are never given as base64; those of a
// result that consists of them alone are the result. An error is the tool's own, for the model, or
// errAnswerTooLarge.
func readResult(raw json.RawMessage, limit int64) (Result, error) {
	var r wireResult
	if err := json.Unmarshal(raw, &r); err != nil {
		return Result{Data: []byte(unreadable)}, nil // the call was answered, so it is over
	}
	if r.ResultType == "input_required" {
		return Result{}, errors.New("the tool wants input from a person in the middle of the call, which is not supported")
	}
	res := r.convert()
	if r.IsError {
		text := strings.TrimSpace(string(res.Data))
		if res.Type != "" && res.Type != jsonType || text == "" {
			text = noReason
		}
		return Result{}, errors.New(clip(text, maxErrorText))
	}
	if int64(len(res.Data)) > limit {
		return Result{}, errAnswerTooLarge
	}
	return res, nil
}

const (
	maxErrorText = 16 << 10
	noReason     = "the tool reported an error and did not say which"
	unreadable   = "[the tool answered, but not in the protocol's form]"
)

func (r wireResult) structured() bool { return len(r.Structured) > 0 && string(r.Structured) != "null" }

func (r wireResult) convert() Result {
	var raws []json.RawMessage
	if len(r.Content) > 0 && json.Unmarshal(r.Content, &raws) != nil {
		raws = []json.RawMessage{r.Content} // one block without its list
	}
	blocks := make([]block, len(raws))
	for i, raw := range raws {
		blocks[i] = readBlock(raw)
	}
	structured := r.structured()
	if len(blocks) == 1 && !structured {
		if res, ok := blocks[0].alone(); ok {
			return res
		}
	}
	var parts []string
	text := false
	for _, b := range blocks {
		text = text || b.Text != nil && *b.Text != ""
		if b.Text == nil || *b.Text != "" {
			parts = append(parts, b.line())
		}
	}
	if structured && !text {
		var b bytes.Buffer
		if len(parts) == 0 && json.Compact(&b, r.Structured) == nil {
			return Result{Data: bytes.ToValidUTF8(b.Bytes(), []byte("\uFFFD")), Type: jsonType}
		}
		parts = append(parts, strings.ToValidUTF8(string(r.Structured), "\uFFFD"))
	}
	return Result{Data: []byte(strings.Join(parts, "\n"))}
}

// readBlock reads one piece of content; one that cannot be read has the type "".
func readBlock(raw json.RawMessage) block {
	var b block
	if json.Unmarshal(raw, &b) != nil {
		return block{}
	}
	switch {
	case b.Type != "text":
		b.Text = nil
	case b.Text == nil:
		b.Text = new(string)
	}
	return b
}

// alone returns the bytes of a block that is not text.
func (b block) alone() (Result, bool) {
	encoded, kind := b.Data, b.MIMEType
	switch {
	case b.Type == "image" || b.Type == "audio":
	case b.Type == "resource" && b.Resource != nil && b.Resource.Text == nil:
		encoded, kind = b.Resource.Blob, b.Resource.MIMEType
	default:
		return Result{}, false
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(data) == 0 {
		return Result{}, false
	}
	kind = blockType(kind)
	if strings.HasPrefix(kind, "text/") && !utf8.Valid(data) {
		kind = octets
	}
	return Result{Data: data, Type: kind}, true
}

// line is what a block looks like among others.
func (b block) line() string {
	switch {
	case b.Type == "text":
		return *b.Text
	case b.Type == "image" || b.Type == "audio":
		return fmt.Sprintf("[%s, %s, %s]", b.Type, blockType(b.MIMEType), decodedSize(b.Data))
	case b.Type == "resource" && b.Resource != nil && b.Resource.Text != nil:
		return fmt.Sprintf("[resource %.300q]\n%s", b.Resource.URI, *b.Resource.Text)
	case b.Type == "resource" && b.Resource != nil:
		return fmt.Sprintf("[resource %.300q, %s, %s]", b.Resource.URI, blockType(b.Resource.MIMEType), decodedSize(b.Resource.Blob))
	case b.Type == "resource_link":
		return b.link()
	case b.Type == "":
		return "[content that is not in the protocol's form]"
	}
	return fmt.Sprintf("[content of the unknown type %.40q]", b.Type)
}

func (b block) link() string {
	s := fmt.Sprintf("[link %.300q to %.1000q", b.Name, b.URI)
	if b.MIMEType != "" {
		s += ", " + blockType(b.MIMEType)
	}
	if b.Size != nil {
		s += fmt.Sprintf(", %d bytes", *b.Size)
	}
	return s + "]"
}

func decodedSize(encoded string) string {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return fmt.Sprintf("%d bytes that are not base64", len(encoded))
	}
	return fmt.Sprintf("%d bytes", len(data))
}

// blockType returns a server's media type without parameters, if it is one.
func blockType(s string) string {
	if len(s) > 200 {
		return octets
	}
	t, _, err := mime.ParseMediaType(s)
	if err != nil || !strings.Contains(t, "/") {
		return octets
	}
	return t
}
