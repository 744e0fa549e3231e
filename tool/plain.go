package tool

import (
	"bytes"
	"encoding/json"
)

// Media types that this package makes.
const (
	jsonType = "application/json"
	octets   = "application/octet-stream"
)

// plainJSON is json.Marshal without the escapes that only HTML needs: a model reads "<" more easily.
func plainJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
