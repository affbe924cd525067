#!/usr/bin/env bash
# test-package.sh FILE.deb : the package, in a machine of its own. `make package-test` runs it, as root.
#
# The machine is a fresh minimal Debian in a temporary folder (mmdebstrap), with systemd and what the package depends on and
# nothing else, booted in namespaces of its own: processes, mounts, network, name, control groups. So the unit runs as it
# will, by systemd, as its user, in its sandbox. What is left behind is found by comparing the folder before and after.
set -u
. packaging/fresh-root.sh

deb=${1:?usage: test-package.sh FILE.deb}
if [ "$(id -u)" -ne 0 ]; then
	echo "test-package.sh makes a root folder and namespaces: it has to be run as root" >&2
	exit 1
fi
work=$(mktemp -d "${TMPDIR:-/tmp}/hapax-package.XXXXXX") || exit 1
root=$work/root
group=${work##*/} # a control group
boot=
init=
passed=0
failed=0

# shellcheck disable=SC2317  # called by the trap
finish() {
	[ -z "$boot" ] || kill -KILL "$boot" 2>/dev/null && wait "$boot" 2>/dev/null
	unshare --mount --propagation private sh -c "mount -t cgroup2 none '$work/cgroup' &&
		for _ in 1 2 3 4 5; do
			find '$work/cgroup/$group' -depth -type d -exec rmdir {} + 2>/dev/null && break
			sleep 0.2
		done" 2>/dev/null
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
		head -20 "$work/out"
		[ -z "$init" ] || inside journalctl --no-pager -q -n 20 -u hapax
	fi
}

# --- the machine

depends=$(dpkg-deb -f "$deb" Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/ //g')
mkdir "$root" "$work/cgroup"
echo "making a minimal Debian with $depends and systemd"
make_root "$root" "$depends,systemd-sysv" || exit 1
cp "$deb" "$root/hapax.deb"

# As process 1 of its namespaces. The host's control groups are left out, too.
cat >"$work/boot" <<EOF
set -e
. packaging/fresh-root.sh
furnish_root '$root'
mount -t tmpfs tmpfs tmp
mount -t cgroup2 cgroup2 '$work/cgroup'
mkdir '$work/cgroup/$group'
echo 0 >'$work/cgroup/$group/cgroup.procs'
exec unshare --cgroup sh -c "mount -t cgroup2 cgroup2 sys/fs/cgroup &&
	exec chroot . env -i container=other PATH=/usr/sbin:/usr/bin /lib/systemd/systemd"
EOF
# unshare leaves the host's own mounts alone, and takes process 1 along when it is killed.
unshare --fork --kill-child --pid --mount --uts --ipc --net --propagation private sh "$work/boot" >"$work/out" 2>&1 </dev/null &
boot=$!

inside() { inside_root "$init" "$@"; } # command…
# Waits up to 30 seconds for a command to succeed.
until_ok() { # command…
	for _ in {1..150}; do
		"$@" >"$work/out" 2>&1 && return 0
		sleep 0.2
	done
	return 1
}
booted() {
	init=$(cat "/proc/$boot/task/$boot/children") && init=${init% } && inside systemctl is-active --quiet multi-user.target
}
until_ok booted
result a_minimal_debian_boots
[ "$failed" -eq 0 ] || exit 1

# Everything that is there, but for what dpkg and apt keep of their packages and the copies that the tools for users make.
everything() {
	(
		cd "$root" || exit 1
		find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log -o -path './etc/*-' \) -prune -o \
			-printf '%P %y %m %U:%G %l\n'
		find etc usr -xdev -type f ! -name '*-' -exec sha256sum {} +
	) | sort
}
left_behind() { diff "$work/before" <(everything) | sed -n 's/^[<>] //p'; }
everything >"$work/before"

# --- installed

inside dpkg -i /hapax.deb >"$work/out" 2>&1
result it_installs
inside systemd-analyze verify --man=no hapax.service >"$work/out" 2>&1 && [ ! -s "$work/out" ]
result systemd_finds_nothing_wrong_with_the_unit
inside systemctl is-enabled hapax >"$work/out" 2>&1 && until_ok inside systemctl is-active hapax
result it_is_enabled_and_runs
inside systemd-analyze security --no-pager hapax.service | sed -n 's/^→/#/p'

get() { # path
	inside bash -c "exec 3<>/dev/tcp/127.0.0.1/7411 && printf 'GET $1 HTTP/1.0\r\n\r\n' >&3 && cat <&3" |
		tee "$work/out" | head -n 1 | grep -q ' 200 '
}
until_ok get /readyz && get /healthz && get /metrics && grep -q '^hapax_transitions_total ' "$work/out"
result it_is_ready_and_healthy

main_pid() { inside systemctl show -P MainPID hapax; }
inside cat "/proc/$(main_pid)/status" >"$work/out" && grep -q '^NoNewPrivs:.1$' "$work/out" &&
	grep -q '^Seccomp:.2$' "$work/out" && grep -q '^CapEff:.0*$' "$work/out" && grep -q '^CapBnd:.0*$' "$work/out" &&
	[ "$(inside stat -c %U "/proc/$(main_pid)")" = hapax ]
result it_runs_as_its_user_without_privileges
inside stat -c '%n %U:%G %a' /etc/hapax /etc/hapax/hapax.json /etc/hapax/workflows /var/lib/hapax /var/lib/hapax/hapax.db >"$work/out" &&
	diff - "$work/out" <<-'EOF' >"$work/diff"
		/etc/hapax root:hapax 750
		/etc/hapax/hapax.json root:hapax 640
		/etc/hapax/workflows root:hapax 750
		/var/lib/hapax hapax:hapax 750
		/var/lib/hapax/hapax.db hapax:hapax 600
	EOF
result configuration_and_data_are_not_for_everybody
inside sh -c 'hapax --version && ldconfig -p | grep libhapax.so.0 && test -s /usr/share/man/man1/hapax.1.gz &&
	test -s /usr/share/doc/hapax/copyright && test -s /usr/share/doc/hapax/docs/operations.md' >"$work/out" 2>&1
result program_library_manual_and_documentation_are_found

# --- used

cat >"$root/etc/hapax/workflows/parcel.json" <<'EOF'
{ "workflow": "parcel", "kind": "entity", "status_types": ["packed", "leaving", "sent", "weighed"], "initial_status": "packed",
  "actions": { "send": { "kind": "http", "url": "http://127.0.0.1:7411/api/v1/modules/parcel/sweep" },
               "weigh": { "kind": "exec", "argv": ["/bin/sh", "-c", "cat >/dev/null; echo '{\"grams\": 5}'"], "effect": "idempotent" } },
  "steps": [ { "step_id": 10, "step_key": "send", "status": "packed", "claim_state": ["leaving", "packed"],
               "successful_state": "sent", "action": "send" },
             { "step_id": 20, "step_key": "weigh", "status": "sent", "successful_state": "weighed", "action": "weigh" } ] }
EOF
cat >"$root/etc/hapax/workflows/trip.json" <<'EOF'
{ "workflow": "trip", "kind": "run", "actions": { "go": { "kind": "noop" } },
  "steps": [ { "name": "go", "type": "task", "action": "go" }, { "name": "rest", "type": "wait", "for": "50ms" } ] }
EOF
inside systemctl reload hapax && until_ok inside journalctl -q -u hapax --grep 'definitions are kept as they were' &&
	! inside hapax entity create parcel p-0 >"$work/out" 2>&1
result a_reload_refuses_a_claim_without_a_janitor
sed -i 's/"modules": {}/"modules": { "parcel": { "janitor": {} } }, "exec": { "enabled": true }/' "$root/etc/hapax/hapax.json"
inside systemctl restart hapax && get /readyz && [ "$(inside systemctl show -P Type hapax)" = notify ]
result a_start_returns_when_it_is_ready
inside hapax entity create parcel p-1 >"$work/out" 2>&1 && inside hapax entity fire parcel p-1 send >"$work/out" 2>&1 &&
	grep -q 'parcel p-1: sent, version 3' "$work/out"
result a_claimed_step_with_an_http_action
inside hapax entity fire parcel p-1 weigh >"$work/out" 2>&1 && grep -q grams "$work/out"
result a_step_with_an_exec_action
inside hapax run start trip --key t-1 --wait >"$work/out" 2>&1 && grep -q COMPLETED "$work/out" &&
	inside hapax run start trip --key t-1 --json >"$work/out" 2>&1 && grep -q '"created":false' "$work/out"
result a_run_once_for_its_key
rm "$root/etc/hapax/workflows/trip.json"
echo '{' >"$root/etc/hapax/workflows/bad.json"
inside systemctl reload hapax && until_ok inside journalctl -q -u hapax --grep 'bad.json' &&
	inside hapax run start trip --key t-2 --wait >"$work/out" 2>&1
result a_bad_definition_is_refused_and_the_old_ones_serve_on
rm "$root/etc/hapax/workflows/bad.json"
inside runuser -u hapax -- hapax audit --db sqlite:/var/lib/hapax/hapax.db >"$work/out" 2>&1
result the_history_holds

# --- operated: all that root does in docs/operations.md, in its order; where an answer is shown, it is the answer

mkdir -p "$work/page" "$root/build/deb" "$root/backup"
cp "$deb" "$root/build/deb/"
inside chown hapax: /backup
(cd "$work/page" && python3 "$OLDPWD/tests/support/page.py" root "$OLDPWD/docs/operations.md")
[ "$(ls "$work/page" | wc -l)" -ge 10 ]
result docs_operations_md_has_its_commands
for script in "$work"/page/*.root; do
	inside sh -c "$(cat "$script")" >"$work/out" 2>&1 </dev/null &&
		{ [ ! -s "${script%.root}.text" ] || python3 tests/support/page.py fits "${script%.root}.text" "$work/out"; }
	result "operations: $(head -c 70 "$script")"
done
until_ok get /readyz && inside hapax entity show parcel p-1 >"$work/out" 2>&1 && grep -q weighed "$work/out"
result restored_it_serves_what_was_backed_up
rm -r "$root/build" "$root/backup" "$root/var/lib/hapax/lost"

# --- killed, upgraded, stopped

parcel_is_weighed() { inside hapax entity show parcel p-1 | grep -q weighed; }
old=$(main_pid)
inside kill -KILL "$old" 2>/dev/null || inside sh -c "kill -KILL $old"
until_ok parcel_is_weighed && [ "$(main_pid)" != "$old" ]
result killed_it_comes_back_with_its_data
old=$(main_pid)
inside dpkg -i /hapax.deb >"$work/out" 2>&1 && until_ok parcel_is_weighed && [ "$(main_pid)" != "$old" ] &&
	grep -q '"enabled": true' "$root/etc/hapax/hapax.json"
result an_upgrade_restarts_and_keeps_configuration_and_data
sed -i.good 's/"modules"/"moduls"/' "$root/etc/hapax/hapax.json"
inside systemctl restart hapax >"$work/out" 2>&1 # it waits to be told that it is ready, in vain
until_ok inside systemctl is-failed hapax && [ "$(inside systemctl show -P ExecMainStatus hapax)" = 78 ] &&
	[ "$(inside systemctl show -P NRestarts hapax)" = 0 ]
result a_bad_configuration_is_not_tried_again
mv "$root/etc/hapax/hapax.json.good" "$root/etc/hapax/hapax.json"
inside systemctl restart hapax && until_ok parcel_is_weighed && inside systemctl stop hapax &&
	[ "$(inside systemctl show -P Result hapax)" = success ] && inside systemctl start hapax
result it_stops_in_good_order

# --- removed

inside dpkg --remove hapax >"$work/out" 2>&1
left_behind >"$work/left"
! grep -vE '(^|  )(var/lib/hapax|etc/hapax)( |/)|^etc [d]|^var/lib d|  etc/(passwd|group|shadow|gshadow)$' "$work/left" >"$work/out" &&
	grep -q '^etc/hapax/hapax.json ' "$work/left" && ! inside systemctl is-active --quiet hapax
result removed_it_leaves_data_and_configuration
cp "$root/etc/hapax/hapax.json" "$work/hapax.json"
inside dpkg --purge hapax >"$work/out" 2>&1
left_behind >"$work/left"
! grep -vE '^var/lib/hapax( d 700 0:0|/hapax\.db[a-z.-]* f 600 0:0) $' "$work/left" >"$work/out"
result purged_it_leaves_nothing_but_the_data_which_is_for_root
sed 's/^/# left: /' "$work/left"
inside dpkg -i /hapax.deb >"$work/out" 2>&1 && cp "$work/hapax.json" "$root/etc/hapax/hapax.json" &&
	inside systemctl restart hapax && until_ok parcel_is_weighed && [ "$(inside stat -c %U /var/lib/hapax/hapax.db)" = hapax ]
result installed_again_it_has_its_data

# --- opened, as docs/operations.md says

key=$(inside runuser -u hapax -- hapax key create --scope admin --db sqlite:/var/lib/hapax/hapax.db 2>"$work/out")
echo HAPAX_TLS_TERMINATED=1 >"$root/etc/default/hapax"
sed -i 's/127.0.0.1:7411/0.0.0.0:7411/' "$root/etc/hapax/hapax.json"
inside systemctl restart hapax && until_ok get /readyz && ! inside hapax entity show parcel p-1 >"$work/out" 2>&1 &&
	inside env HAPAX_KEY="$key" hapax entity show parcel p-1 >"$work/out" 2>&1 &&
	inside journalctl -q -u hapax --grep 'ready http://0.0.0.0:7411' >>"$work/out" 2>&1
result beyond_loopback_with_a_key

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
