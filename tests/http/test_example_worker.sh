#!/usr/bin/env bash
# examples/worker: each worker in ten lines, for real: it completes what it can do, and fails what it cannot.
set -u
. tests/support/walk.sh

build=${HAPAX_BUILD:-$PWD/build}
if [ ! -x "$build/hapax" ]; then
	echo "[  SKIPPED ] the program is not built in this flavour"
	exit 0
fi
dir=$(mktemp -d)
pids=
finish() {
	for pid in $pids; do kill "$pid" && wait "$pid"; done 2>/dev/null
	rm -rf "$dir"
}
trap finish EXIT
trap 'exit 143' TERM INT
unset HAPAX_DB HAPAX_WORKSPACE HAPAX_REQUESTER HAPAX_TIMEOUT HAPAX_CONFIG HAPAX_WORKFLOWS HAPAX_NODE HAPAX_LISTEN

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		cat "$dir"/*
	fi
}
push() { "$build/hapax" job push hello --payload "$1" --json | grep -o 'job_[0-9a-z]*'; }
is() { "$build/hapax" job show "$1" --json >"$dir/out" 2>&1 && grep -q "$2" "$dir/out"; }

"$build/hapax" serve --db "sqlite:$dir/hapax.db" --listen 127.0.0.1:0 >"$dir/ready" 2>"$dir/log" &
pids=$!
await 60 grep -q '^ready ' "$dir/ready"
result the_engine_is_ready
HAPAX_SERVER=$(sed -n 's/^ready //p' "$dir/ready")
export HAPAX_SERVER
for worker in 'python3 examples/worker/worker.py' 'node examples/worker/worker.js'; do
	tool=${worker%% *}
	file=${worker#* }
	[ "$(grep -cvE '^ *(#|//|$)' "$file")" -le 10 ]
	result "ten_lines_for_$tool"
	$worker >"$dir/$tool.log" 2>&1 &
	pid=$!
	pids="$pids $pid"
	id=$(push '{"name": "Ada"}')
	await 60 is "$id" '"status":"COMPLETED".*"hello Ada"'
	result "done_by_$tool"
	id=$(push '{}')
	await 60 is "$id" '"status":"RETRYING"'
	result "failed_by_$tool"
	kill "$pid"
	wait "$pid" 2>/dev/null || true # it was told to end
done
