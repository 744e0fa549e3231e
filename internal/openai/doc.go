// Package openai asks any OpenAI-compatible server for one model answer, and either has all of it or none.
//
// It stands on sashabaranov/go-openai, which builds the request, sends it and frames the stream. What that
// library hides or alters is taken from the wire instead, below its HTTPDoer: headers, error
// bodies, the exact bytes of arguments, and the members that it drops from an empty message.
//
// The package never tries a failed call again, because Temporal does; it says in an [Error] whether that
// makes sense and when. It keeps nothing between calls but what it learned about the server's dialect, and
// it knows neither transcripts nor tools: the caller hands it a whole conversation and gets an [Answer].
package openai
