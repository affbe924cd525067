#!/usr/bin/env bash
# make SLIM=1: a build without libpq, hiredis and OpenSSL of its own, and what it can do: a server on SQLite with a run that ends, an
# audit by another program's digests, and clear words for what it cannot.
set -u
export LC_ALL=C

build=${HAPAX_BUILD:-$PWD/build}
if [ ! -x "$build/hapax" ] || grep -qE '__(asan|tsan)_init' "$build/libhapax.so"; then
	echo "[  SKIPPED ] this flavour is not compared"
	exit 0
fi
dir=$(mktemp -d)
child=
# shellcheck disable=SC2317  # called by the trap
finish() {
	[ -z "$child" ] || kill -9 "$child" 2>/dev/null
	rm -rf "$dir"
}
trap finish EXIT
: >"$dir/out"
result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		head -20 "$dir/out"
	fi
}
says() { grep -qE -- "$1" "$dir/out"; }

# In a folder of its own. What neither sees HX_SLIM nor a header of those libraries is compiled in the same way by both: these objects
# are taken over, which leaves a minute's work out.
folder=build/slim-test
slim_make() { HAPAX_NO_INSTALL=1 make SLIM=1 INNER=1 FLAVOUR=slim CFLAGS=-O0 BUILD="$folder" -j2 "$@"; }
# The sources and headers whose text depends on it, and what belongs to the libraries, as patterns of grep.
differs() {
	grep -rl HX_SLIM src include
	printf '%s\n' libpq postgresql/ hiredis/ openssl/
}
take_over() {
	differs >"$dir/differs" && rm -rf "$folder" && slim_make "$folder/flags" &&
		(cd "$build/obj" && find src -name '*.d' -exec grep -LFf "$dir/differs" {} +) | sed 's/d$/o/' >"$dir/same" &&
		mkdir -p "$folder/obj" && (cd "$build/obj" && xargs cp --parents -t "$root/$folder/obj" <"$dir/same")
}
root=$PWD
{ take_over && slim_make "$folder/hapax" "$folder/libhapax.so"; } >"$dir/out" 2>&1
result it_builds
slim=$PWD/$folder/hapax
for file in "$slim" "$folder/libhapax.so"; do readelf -d "$file" | grep NEEDED; done >"$dir/out"
! says 'libpq|libhiredis|libssl|libcrypto|libcurl' && says 'libsqlite3'
result it_needs_no_other_library
ldd "$slim" >"$dir/out"
! says 'libpq|libhiredis|libssl|libcurl'
result nor_does_what_it_needs

cd "$dir" || exit 1
mkdir workflows
cat >workflows/hello.json <<'END'
{ "workflow": "hello", "kind": "run", "actions": { "nothing": { "kind": "noop" } },
  "steps": [ { "name": "s", "type": "task", "action": "nothing" }, { "name": "w", "type": "wait", "for": "10ms" } ] }
END
"$slim" serve --db sqlite:slim.db --workflows workflows --listen 127.0.0.1:0 >"$dir/log" 2>&1 &
child=$!
port=
for _ in {1..300}; do
	port=$(grep -oE '127\.0\.0\.1:[0-9]+' "$dir/log" | head -1)
	[ -n "$port" ] && "$slim" run list --server "http://$port" >/dev/null 2>&1 && break
	sleep 0.1
done
"$slim" run start hello --key one --wait 30s --server "http://$port" --json >"$dir/out" 2>&1 && says COMPLETED
result a_run_ends
kill "$child" && wait "$child"
result the_server_stops
child=
"$build/hapax" audit --db sqlite:slim.db >"$dir/out" 2>&1
result its_chains_are_the_same # digests of the one, verified by the other

"$slim" serve --db postgres://127.0.0.1/x --listen 127.0.0.1:0 >"$dir/out" 2>&1
[ "$?" -eq 78 ] && says 'built without PostgreSQL'
result postgresql_is_refused_in_words
"$slim" gate --listen 127.0.0.1:0 --upstream http://127.0.0.1:1 --store redis://127.0.0.1:1/0 >"$dir/out" 2>&1
[ "$?" -eq 78 ] && says 'built without Redis'
result redis_is_refused_in_words
"$slim" gate --listen 127.0.0.1:0 --upstream https://127.0.0.1:1 --store memory: >"$dir/out" 2>&1
[ "$?" -eq 78 ] && says 'built without TLS'
result tls_is_refused_in_words
exit 0
