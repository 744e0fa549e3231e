// Package modeltest is a model server with a script: a real HTTP server on the loopback interface that
// speaks the OpenAI chat completions protocol, plain and streamed.
//
// It plays the steps of tests/cases/turns.json, or asks a Go function for each answer, and it judges each
// request as the strictest provider would ([Server.Breaches]), keeps it with its time of arrival
// ([Server.Requests]) and counts what a provider would have charged ([Server.Charges]). Tests, the demo and
// the benchmark use it; nothing of it depends on package testing.
package modeltest
