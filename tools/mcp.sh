#!/bin/sh
# Installs the npm packages of tests/mcp, as its lock file pins them, unless they are there already. Without
# Node the tests that need them are skipped, except in CI, where that is a failure.
set -eu

cd "$(dirname "$0")/.."
if ! command -v npm >/dev/null; then
	if [ "${CI-}" = true ]; then
		echo "CI needs Node and npm for the MCP servers of tests/mcp: install them" >&2
		exit 1
	fi
	echo "note: no npm found, so the tests with MCP servers from npm are skipped"
	exit 0
fi
stamp=tests/mcp/node_modules/.stamp
want=$(cksum <tests/mcp/package-lock.json)
if [ "$(cat "$stamp" 2>/dev/null)" != "$want" ]; then
	echo "installing the MCP servers that the tests talk to (tests/mcp): once, under a minute"
	npm ci --prefix tests/mcp --no-audit --no-fund --loglevel error
	echo "$want" >"$stamp"
fi
