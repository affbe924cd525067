#!/bin/sh
# install-packages.sh SET… : installs what this project needs from Debian, and says nothing when all is there.
#
# Sets are build, demo, test, race, lint, deb and root. Only what is missing is installed, one line for each package, by
# apt-get (with sudo where not root). Installing PostgreSQL and Redis leaves no server running, now or after a boot, and
# creates no cluster: the tests make their own.
# HAPAX_NO_INSTALL=1 turns this off for machines that are furnished in another way.
set -eu

# set package what-it-is
packages='
build gcc               C compiler
build libc6-dev         C library headers
build make              build tool
build pkg-config        finds libraries
build libsqlite3-dev    SQLite, the embedded store
build zlib1g-dev        zlib, for the texts that the program carries
build zopfli            packs them
build libpq-dev         PostgreSQL client library
build libssl-dev        OpenSSL, hashing and TLS
build libhiredis-dev    hiredis, Redis for entry locks and the gate
demo  python3           runs the outside world of the demo: services and a worker
demo  curl              asks the API where there is no verb
test  libcmocka-dev     unit testing framework
test  postgresql        PostgreSQL server, started privately by the tests
test  openssl           certificates for the tests of TLS
test  redis-server      Redis server, started privately by the tests
test  nodejs            runs the other worker of examples/order
test  tzdata            time zones, for schedules
test  faketime          libfaketime, sets the clock of one process
test  jq                what expressions are compared with
test  zsh               tries its completion
test  groff-base        formats the manual
test  python3-jsonschema checks answers of the API against its own description
test  chromium          the browser that tries the dashboard
test  clang             compiler for the fuzzers
test  libclang-rt-14-dev libFuzzer and sanitizer runtimes
race  npm               installs the peers of the race
lint  clang-format      C formatter
lint  cppcheck          static checker
deb   dpkg-dev          flags and dependencies of Debian packages
root  mmdebstrap        makes a minimal Debian in a folder
'

[ -z "${HAPAX_NO_INSTALL:-}" ] || exit 0
command -v dpkg-query >/dev/null || exit 0

names=$(echo "$packages" | while read -r set package what; do
	case " $* " in *" $set "*) echo "$package" ;; esac
done)
# shellcheck disable=SC2086
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' $names 2>/dev/null || :)

present() {
	case "
$installed
" in *"
installed $1
"*) return 0 ;; esac
	case $1 in
	pkg-config) command -v pkg-config >/dev/null ;;
	python3) command -v python3 >/dev/null ;;
	npm) command -v npm >/dev/null ;;
	postgresql) ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 ;;
	redis-server) command -v redis-server >/dev/null ;;
	jq) command -v jq >/dev/null ;;
	chromium) command -v chromium >/dev/null || command -v google-chrome >/dev/null ;;
	nodejs) command -v node >/dev/null ;;
	*) return 1 ;;
	esac
}

missing=
for package in $names; do
	present "$package" || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ]; then
	root=
elif command -v sudo >/dev/null; then
	root=sudo
else
	echo "these packages are missing, and there is no sudo to install them:$missing" >&2
	exit 1
fi

# --- from here on something is installed ------------------------------------------------------------------------

scratch=$(mktemp -d "${TMPDIR:-/tmp}/hapax-packages.XXXXXX")
undo=
cluster_d=/etc/postgresql-common/createcluster.d
cleanup() {
	if [ -n "$undo" ]; then
		# shellcheck disable=SC2086
		$root rm -f $undo
		$root rmdir "$cluster_d" 2>/dev/null || : # stays if it is not empty
	fi
	rm -rf "$scratch"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Puts a file in place for the time of the installation, unless there is one already.
for_now() { # path mode text
	[ ! -e "$1" ] || return 0
	printf '%s\n' "$3" >"$scratch/file"
	undo="$undo $1"
	$root install -D -m "$2" "$scratch/file" "$1"
}

apt() {
	$root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@" >"$scratch/log" 2>&1 || {
		cat "$scratch/log" >&2
		echo "apt-get $1 failed; missing:$missing" >&2
		exit 1
	}
}

for package in $missing; do
	what=$(echo "$packages" | sed -n "s/^[a-z]*  *$package  *//p")
	echo "installing $package: $what"
done
case $missing in *postgresql* | *redis-server*)
	for_now /usr/sbin/policy-rc.d 755 '#!/bin/sh
exit 101'
	;;
esac
case $missing in *postgresql*)
	# pg_createcluster(1): this folder is read after createcluster.conf.
	for_now "$cluster_d/hapax-tests.conf" 644 'create_main_cluster = false'
	;;
esac
apt update
# shellcheck disable=SC2086
apt install -y --no-install-recommends $missing
case $missing in *redis-server*)
	# Not started above, and not to be started by the next boot either. There may be no systemd to tell.
	$root systemctl disable redis-server.service >/dev/null 2>&1 || :
	;;
esac
