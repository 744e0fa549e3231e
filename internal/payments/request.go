package payments

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const maxRequest = 64 << 10 // bytes of a request's body

// A request is the body of POST /refunds.
type request struct {
	Order  string
	Amount Amount
}

// readRequest reads exactly one object with exactly the two members. It walks the tokens itself because
// encoding/json takes the last of two equal names and matches names whatever their case.
func readRequest(r io.Reader) (request, error) {
	d := json.NewDecoder(r)
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return request{}, errors.New("body: want a JSON object {\"order\": ..., \"amount\": ...}")
	}
	var req request
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return request{}, fmt.Errorf("body: %w", err)
		}
		n, _ := name.(string)
		if seen[n] {
			return request{}, fmt.Errorf("body: member %q stands twice", n)
		}
		seen[n] = true
		if err := req.member(d, n); err != nil {
			return request{}, fmt.Errorf("body: member %q: %w", n, err)
		}
	}
	if _, err := d.Token(); err != nil {
		return request{}, fmt.Errorf("body: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return request{}, errors.New("body: something follows the object")
	}
	if !seen["order"] || !seen["amount"] {
		return request{}, errors.New("body: want both \"order\" and \"amount\"")
	}
	return req, nil
}

func (req *request) member(d *json.Decoder, name string) (err error) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	switch name {
	case "order":
		req.Order, err = scalar(raw)
	case "amount":
		err = req.Amount.UnmarshalJSON(raw)
	default:
		err = errors.New("unknown")
	}
	return err
}
