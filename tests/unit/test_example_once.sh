#!/usr/bin/env bash
# examples/once, which shows newcomers how to embed the library: what it says is true.
set -u

once=${HAPAX_BUILD:-$PWD/build}/examples/once
if [ ! -x "$once" ]; then
	echo "[  SKIPPED ] the example is not built in this flavour"
	exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		cat "$dir/out"
	fi
}
says() { grep -qE -- "$1" "$dir/out"; }

"$once" >"$dir/out" 2>&1
result it_ends_well
says '^ +1 × OK ' && says '^ +49 × CLAIM_FAILED ' && says 'outside world: 1$'
result one_effect_for_fifty
says ' open +1 +0 ' && says ' open +charging +2 +1 ' && says ' charging +paid +3 +1 ' && says 'chain holds'
result the_history_tells_it
exit 0
