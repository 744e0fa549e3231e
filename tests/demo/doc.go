// Package demo runs "holdfast demo" as a user does, to its end and into every kind of interruption.
package demo
