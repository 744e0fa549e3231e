// Package secret keeps the values of referenced secrets out of everything that is stored or shown:
// results, errors and logs.
//
// It finds a value as it is, and in the forms that it takes on its way through a request and back:
// base64 (also inside a longer text, as in HTTP's basic authentication), URL-escaped, JSON-escaped and
// quoted as Go quotes. It cannot find a value that somebody cut in two, compressed or encrypted.
package secret
