#!/bin/sh
# Fuzzes every target of the main module for a while: tools/fuzz.sh [TIME-PER-TARGET]
set -eu

cd "$(dirname "$0")/.."
go=${GO:-go} time=${1:-10s}
"$go" list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | while read -r package; do
	for target in $("$go" test -list '^Fuzz' "$package" </dev/null | grep '^Fuzz' || :); do
		echo "== $package $target"
		"$go" test -run '^$' -fuzz "^$target\$" -fuzztime "$time" "$package" </dev/null
	done
done
