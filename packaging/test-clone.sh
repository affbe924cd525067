#!/usr/bin/env bash
# test-clone.sh : what a newcomer does, in a machine of its own. `make root-test` runs it, as root.
#
# The machine is a fresh minimal Debian in a temporary folder (mmdebstrap) with git and make and nothing else, in namespaces
# of its own for processes, mounts and names; its network is the host's, because packages come from there. HEAD is cloned
# into it, and both commands of README's quick start are run: `make run`, until it is ready, with the three commands that it
# prints pasted, stopped by Ctrl-C, and once more, to see that nothing is installed again; then `make test`, with T if that
# is set.
set -u
. packaging/fresh-root.sh

if [ "$(id -u)" -ne 0 ]; then
	echo "test-clone.sh makes a root folder and namespaces: it has to be run as root" >&2
	exit 1
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/hapax-clone.XXXXXX") || exit 1
root=$work/root
boot=
init=
passed=0
failed=0

# shellcheck disable=SC2317  # called by the trap
finish() {
	[ -z "$boot" ] || kill -KILL "$boot" 2>/dev/null && wait "$boot" 2>/dev/null
	rm -rf --one-file-system "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then
		echo "ok $1"
		passed=$((passed + 1))
	else
		echo "not ok $1"
		failed=$((failed + 1))
		tail -n 40 "$work/out"
	fi
}
say() { printf '%4d s  %s\n' "$SECONDS" "$1"; }
await() { # seconds, command…
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.2
	done
}
inside() { inside_root "$init" "$@"; }
in_clone() { inside sh -c "cd /root/hapax && $1"; }

# --- the machine

for port in 7411 9000 9001; do
	if (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
		echo "test-clone.sh: port $port is taken on this machine, and the demo inside needs it" >&2
		exit 1
	fi
done
say "making a minimal Debian with git and make"
mkdir "$root"
make_root "$root" git,make || exit 1
git bundle create --quiet "$root/root/hapax.bundle" HEAD || exit 1
# Process 1 does nothing but bury the dead.
unshare --fork --kill-child --pid --mount --uts --ipc --propagation private sh -c "
	. packaging/fresh-root.sh
	furnish_root '$root' && exec chroot . /bin/sh -c 'while :; do sleep 1; done'" >"$work/out" 2>&1 </dev/null &
boot=$!
# It is there before it has changed its root.
there() { init=$(cat "/proc/$boot/task/$boot/children") && init=${init% } && inside test -e /root/hapax.bundle 2>/dev/null; }
await 30 there && ! inside sh -c 'command -v gcc || command -v python3 || command -v curl' >"$work/out"
result a_minimal_debian
inside git clone --quiet /root/hapax.bundle /root/hapax >"$work/out" 2>&1
result a_clone_of_HEAD
[ "$failed" -eq 0 ] || exit 1

# --- make run

nothing_runs() { # besides process 1, its sleep and who asks
	[ "$(inside sh -c 'cat /proc/[0-9]*/comm' | grep -cvxE 'sh|sleep|cat')" = 0 ]
}
ready() { grep -q 'is printed here' "$work/out"; }
over() { ! kill -0 "$demo" 2>/dev/null; }
progress() { # its last line, every 20 seconds
	[ "$SECONDS" -lt "$told" ] || { told=$((SECONDS + 20)) && say "  $(tail -n 1 "$work/out")"; }
}
make_run() { # starts it, in a session of its own, as a terminal would; says how long it took
	local begun=$SECONDS
	inside env --default-signal=INT,QUIT setsid sh -c 'cd /root/hapax && echo $$ >/run/demo.pid && exec make run' >"$work/out" 2>&1 </dev/null &
	demo=$!
	told=$((SECONDS + 20))
	await 1800 eval 'progress; ready || over' && ready && say "ready, $((SECONDS - begun)) s after make run"
}
ctrl_c() {
	inside bash -c 'kill -INT -- "-$(cat /run/demo.pid)"' && await 30 over && await 10 nothing_runs
}
# The commands are what the banner indents and begins with a bracket or a variable.
paste_command() { # number
	sed -n 's/^  \([(i].*build\/hapax.*\)/\1/p' "$work/banner" | sed -n "$1p" >"$root/root/hapax/paste"
	[ -s "$root/root/hapax/paste" ] && in_clone '. ./paste' 2>&1 | tee "$work/said" | sed 's/^/        /'
}
says() { grep -qE -- "$1" "$work/said" || { cp "$work/said" "$work/out" && false; }; }

say "make run"
[ "$(sed -n '/^## Quick start/,/^```$/s/^\(make [a-z]*\) .*/\1/p' README.md | paste -sd,)" = 'make run,make test' ]
result both_commands_of_the_quick_start
make_run
result make_run_installs_builds_and_is_ready
sed -n 's/^installing /# installed /p' "$work/out"
cp "$work/out" "$work/banner"
paste_command 1
says 'invoice inv-100: sent, version 4' && says '409 CLAIM_FAILED'
result a_step_is_fired_twice_at_once
paste_command 2
says 'status +COMPLETED' && says 'nothing was done'
result a_run_is_started
paste_command 3
says ' 40 of 40 items cancelled, [1-9][0-9]* refunded' && says '^balance +1000$'
result a_batch_is_cancelled_and_refunded
ctrl_c
result ctrl_c_leaves_nothing_running
make_run && ! grep -qE '^installing |^  (CC|LINK) ' "$work/out"
result a_second_make_run_installs_and_builds_nothing
ctrl_c
result ctrl_c_again

# --- make test

say "make test${T:+ T=$T}"
in_clone "make test T='${T:-}'" 2>&1 | tee "$work/out"
grep -qE '^[1-9][0-9]* passed, 0 failed$' "$work/out"
result make_test_passes
await 10 nothing_runs
result it_leaves_nothing_running
say "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
