#!/bin/sh
# Prints the path of a temporal command that is new enough: the PATH's if it is, else bin/temporal, which is
# built when it is not there. All else that it has to say goes to stderr.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
wanted=$(sed -n 's/^.*github.com\/temporalio\/cli v\([0-9.]*\).*$/\1/p' "$root/tools/go.mod")

# at_least HAVE WANT compares two versions of three numbers.
at_least() {
	awk -v have="$1" -v want="$2" 'BEGIN {
		n = split(have, h, "."); split(want, w, ".")
		if (n != 3) exit 1
		for (i = 1; i <= 3; i++) if (h[i] + 0 != w[i] + 0) exit !(h[i] + 0 > w[i] + 0)
	}'
}

if [ -n "${HOLDFAST_TEMPORAL-}" ]; then
	echo "$HOLDFAST_TEMPORAL"
	exit 0
fi
if found=$(command -v temporal); then
	have=$("$found" --version 2>/dev/null | sed -n 's/^temporal version v\{0,1\}\([0-9]*\.[0-9]*\.[0-9]*\).*$/\1/p')
	if at_least "$have" "$wanted"; then
		echo "$found"
		exit 0
	fi
	echo "the temporal on the PATH ($found) is ${have:-of unknown version}; $wanted or newer is needed" >&2
fi
"$root/tools/build.sh" temporal tools github.com/temporalio/cli/cmd/temporal \
	"about three minutes on two cores (the Temporal CLI with its dev server and Web UI)" \
	"-X github.com/temporalio/cli/temporalcli.Version=$wanted" >&2
echo "$root/bin/temporal"
