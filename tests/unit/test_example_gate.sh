#!/usr/bin/env bash
# examples/gate, which shows how a program of one's own pays once: what it says is true.
set -u

gate=${HAPAX_BUILD:-$PWD/build}/examples/gate
if [ ! -x "$gate" ]; then
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

"$gate" >"$dir/out" 2>&1
result it_ends_well
says 'invoice-1 +2500 +201 .*created$' && says 'invoice-1 +2500 +201 .*replayed$' &&
	says 'invoice-1 +9900 +422 FINGERPRINT_MISMATCH' && says 'invoice-2 +9900 +402 .*created$' &&
	says 'invoice-2 +9900 +402 .*replayed$' && says 'there are 7500$'
result one_payment_for_two_requests

# It needs nothing but what hapax.h has and libhapax.so shows. (A sanitized library wants a sanitized program.)
build=${HAPAX_BUILD:-$PWD/build}
if grep -qE '__(asan|tsan)_init' "$build/libhapax.so"; then
	echo "[  SKIPPED ] libhapax.so is sanitized"
	exit 0
fi
cc -Iinclude examples/gate/gate.c -L"$build" -lhapax -lsqlite3 -o "$dir/gate" >"$dir/out" 2>&1 &&
	LD_LIBRARY_PATH=$build "$dir/gate" "$dir/shop.db" key 100 >"$dir/out" 2>&1 && says '201 .*created$'
result it_links_with_the_shared_library
LD_LIBRARY_PATH=$build "$dir/gate" "$dir/shop.db" key 100 >"$dir/out" 2>&1 && says '201 .*replayed$'
result the_next_process_knows_it
exit 0
