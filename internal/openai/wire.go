package openai

import (
	"bytes"
	"io"
	"net/http"
)

// maxErrorBody bounds what is read of an error's body, in bytes.
const maxErrorBody = 64 << 10

// wire is what go-openai sends with. It puts the messages into the request and keeps what go-openai drops
// from the response.
type wire struct{ http *http.Client }

// Do sends req for the exchange in its context.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	x := req.Context().Value(exchangeKey{}).(*exchange)
	if err := x.fill(req); err != nil {
		return nil, err
	}
	resp, err := w.http.Do(req)
	if err != nil {
		return nil, err
	}
	x.status, x.header = resp.StatusCode, resp.Header
	if err := x.heard(0); err != nil {
		resp.Body.Close()
		return nil, err
	}
	if x.cfg.Stream && x.succeeded() {
		resp.Body = newEvents(x, resp.Body)
		return resp, nil
	}
	defer resp.Body.Close()
	if err := x.readAll(resp.Body); err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(x.raw))
	return resp, nil
}

func (x *exchange) succeeded() bool { return x.status >= 200 && x.status < 300 }

// readAll keeps the body of an answer in one piece, or the beginning of an error's.
func (x *exchange) readAll(src io.Reader) (err error) {
	if x.succeeded() {
		x.raw, err = io.ReadAll(meter{x, src})
		x.whole = err == nil
		return err
	}
	// The status says most of it, so a body that breaks off is not a failure of its own.
	body, _ := io.ReadAll(io.LimitReader(meter{x, src}, maxErrorBody))
	x.raw = x.cfg.hide(body)
	return nil
}
