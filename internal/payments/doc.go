// Package payments is a small payments service over HTTP, the outside world of the demo and of the kill
// tests. It keeps its own books in a file of its own, so that what it says about a refund does not
// depend on anything that the worker believes.
//
// It honours the Idempotency-Key header (draft-ietf-httpapi-idempotency-key-header): a key that it has
// seen gets the answer that it got before and makes no second entry. It deliberately does not stop an
// order from being refunded twice under two keys: a caller that loses its key must show up in the books.
//
//	GET  /orders/{id}   an order
//	POST /refunds       {"order": "42", "amount": "19.90"} with an Idempotency-Key
//	GET  /books         every entry, and how many requests there were for it
package payments
