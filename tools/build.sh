#!/bin/sh
# Builds one pinned tool into bin/, unless the one that is there was built from the same pins by the same Go.
# (golangci-lint refuses code for a newer Go than it was built with, so the Go version counts too.)
#
#   tools/build.sh NAME MODULE PACKAGE HOWLONG [LDFLAGS]
#
# MODULE is a folder with a go.mod that pins PACKAGE by a tool directive; HOWLONG is told to the user.
set -eu

name=$1 module=$2 package=$3 howlong=$4 ldflags=${5-}
root=$(cd "$(dirname "$0")/.." && pwd)
go=${GO:-go}
out=$root/bin/$name
stamp=$root/bin/.$name.stamp
want="$("$go" version) $(cat "$root/$module/go.mod" "$root/$module/go.sum" | cksum) $ldflags"

if [ -x "$out" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$want" ]; then
	exit 0
fi
mkdir -p "$root/bin"
rm -f "$stamp"
began=$(date +%s)
echo "building bin/$name from the sources pinned in $module/go.mod: once, $howlong"

# The exit code has to get past the pipe, and sh has no pipefail everywhere.
failed=$root/bin/.$name.failed
rm -f "$failed"
{ GOWORK=off "$go" build -C "$root/$module" -v -ldflags "$ldflags" -o "$out" "$package" 2>&1 || : >"$failed"; } | {
	modules=0 packages=0
	while IFS= read -r line; do
		case $line in
		"go: downloading "*)
			modules=$((modules + 1))
			[ $((modules % 50)) -ne 0 ] || echo "  $modules modules downloaded"
			;;
		*[" :"]*) echo "  $line" ;;
		*)
			packages=$((packages + 1))
			[ $((packages % 250)) -ne 0 ] || echo "  $packages packages compiled, $(($(date +%s) - began)) s"
			;;
		esac
	done
}
if [ -e "$failed" ]; then
	rm -f "$failed"
	echo "bin/$name could not be built: see above. It needs the Go module proxy once; then it is kept." >&2
	exit 1
fi
echo "$want" >"$stamp"
echo "built bin/$name in $(($(date +%s) - began)) s"
