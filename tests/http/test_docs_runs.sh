#!/usr/bin/env bash
# docs/runs.md: its first run, walked through (tests/support/walk.sh).
set -u
. tests/support/walk.sh

build=${HAPAX_BUILD:-$PWD/build}
root=$PWD
if [ ! -x "$build/hapax" ]; then
	echo "[  SKIPPED ] the program is not built in this flavour"
	exit 0
fi
dir=$(mktemp -d)
finish() {
	for pid in $walk_terminals; do kill "$pid" && wait "$pid"; done 2>/dev/null
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 143' TERM INT
mkdir "$dir/build"
ln -s "$build/hapax" "$dir/build/hapax"
cd "$dir" || exit 1
unset HAPAX_DB HAPAX_WORKSPACE HAPAX_REQUESTER HAPAX_TIMEOUT HAPAX_CONFIG HAPAX_WORKFLOWS HAPAX_NODE COLUMNS
port=$(python3 -c 'import socket; print(socket.create_server(("127.0.0.1", 0)).getsockname()[1])')
export HAPAX_LISTEN=127.0.0.1:$port HAPAX_SERVER=http://127.0.0.1:$port

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		[ ! -e out ] || cat out
		tail -n 20 [0-9]*.log
	fi
}

walk_split "$root/docs/runs.md"
walk 4
exit 0
