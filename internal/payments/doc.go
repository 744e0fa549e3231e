// Package payments is a small payments service over HTTP, the outside world of the demo and of the kill
// tests. It keeps its own books in a file of its own, so that what it says about a refund does not
// depend on anything that the worker believes.
//
// It plays three kinds of destination:
//   - one that honours the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header), by default: a key that
//     it has seen gets the answer that it got before and makes no second entry;
//   - one that ignores keys and can be asked what it made: Config.IgnoreKeys;
//   - one that can do neither: Config.IgnoreKeys and Config.Unaskable.
//
// It deliberately does not stop an order from being refunded twice, or a refund from being taken back twice, under
// two keys: a caller that loses its key must show up in the books. What may go wrong with a request is a [Fault].
//
//	GET  /orders/{id}            an order
//	GET  /orders/{id}/state      what was refunded of it and not taken back
//	POST /refunds                {"order": "42", "amount": "19.90"} with an Idempotency-Key
//	GET  /refunds?key=&order=    what was made under the key, for the order, or both
//	POST /refunds/{refund}/void  takes a refund back, with an Idempotency-Key
//	GET  /books                  every entry, and how many requests there were for it
package payments
