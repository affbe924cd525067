#!/usr/bin/env bash
# examples/embed: built as its first lines say, with what make install puts in place, and run; killed at many moments and run
# again. However often that happens, one order is charged once.
set -u

build=${HAPAX_BUILD:-$PWD/build}
if [ ! -x "$build/hapax" ] || grep -qE '__(asan|tsan)_init' "$build/libhapax.so"; then
	echo "[  SKIPPED ] a program cannot be built with the library of this flavour"
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
charges() { find "$dir/shop" -name 'charged.*' | wc -l; }

[ "$(wc -l <examples/embed/embed.c)" -lt 60 ]
result it_has_less_than_60_lines
at=$dir/dest/opt/hapax
DESTDIR=$dir/dest PREFIX=/opt/hapax BUILD=$build packaging/install.sh install >"$dir/out" 2>&1
export PKG_CONFIG_PATH=$at/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir/dest LD_LIBRARY_PATH=$at/lib
# shellcheck disable=SC2046
cc -std=c99 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only $(pkg-config --cflags hapax) examples/embed/embed.c >"$dir/out" 2>&1
result without_a_warning
# As a C++ program sees it; clang is there for the fuzzers.
echo '#include <hapax.h>' | clang -x c++ -fsyntax-only -Wall -Wextra -Werror -Iinclude - >"$dir/out" 2>&1
result the_header_is_cplusplus_too

# The command that the example and the page show.
command=$(sed -n 's/^ \*\t\(cc .*\)$/\1/p' examples/embed/embed.c)
grep -qxF "\$ $command" docs/embedding.md
result the_page_says_the_same
grep -oE '\bhx_[a-z0-9_]+\(' include/hapax.h | sort -u | while read -r name; do
	grep -qF "${name%(}" man/hapax.3 || echo "not in man/hapax.3: ${name%(}"
done >"$dir/out"
[ ! -s "$dir/out" ]
result every_function_is_in_the_manual
cp examples/embed/embed.c "$dir" && mkdir "$dir/shop" && cd "$dir" || exit 1
(eval "$command") >"$dir/out" 2>&1
result it_builds_and_runs_as_it_says
rm -rf "$dir"/embed.db* "$dir"/charged.*
cd "$dir/shop" || exit 1

"$dir/embed" order-7 >"$dir/out" 2>&1
result it_ends_well
says '^run_[0-9a-z]+ created true: COMPLETED ."charged":1200.$' && says '^run_[0-9a-z]+ created false: COMPLETED ."charged":1200.$' &&
	[ "$(cut -d' ' -f1 "$dir/out" | sort -u | wc -l)" -eq 1 ]
result two_starts_are_one_run
[ "$(charges)" -eq 1 ]
result one_charge
"$dir/embed" order-7 >"$dir/out" 2>&1 && ! says 'created true' && [ "$(charges)" -eq 1 ]
result another_process_finds_the_same_run
"$dir/embed" order-8 >"$dir/out" 2>&1 && says 'created true' && [ "$(charges)" -eq 2 ]
result another_key_is_another_order

# Killed after more and more milliseconds: while it opens, defines, starts, charges, waits, ends.
bad=
for i in {1..25}; do
	"$dir/embed" "kill-$i" >"$dir/out" 2>&1 &
	child=$!
	sleep "0.0$(printf '%02d' $((i * 4 - 3)))"
	kill -9 "$child" 2>/dev/null
	wait "$child" 2>/dev/null
	child=
	"$dir/embed" "kill-$i" >"$dir/out" 2>&1 && says 'created false: COMPLETED ."charged":1200.$' || bad="$bad kill-$i"
	[ "$(charges)" -eq $((2 + i)) ] || bad="$bad charges:$(charges):$i"
done
[ -z "$bad" ] || { echo "$bad" >>"$dir/out" && false; }
result killed_anywhere_one_charge_for_each_order
"$build/hapax" audit --db sqlite:embed.db >"$dir/out" 2>&1
result and_every_promise_was_kept

# A server has no functions: it says which it lacks, and leaves the orders to the program (tests/http/test_left_functions.c).
timeout 60 "$build/hapax" serve --db sqlite:embed.db --listen 127.0.0.1:0 >"$dir/out" 2>&1 &
child=$!
for _ in {1..300}; do
	says 'no function .*charge.* is registered here' && says '127.0.0.1' && break
	sleep 0.1
done
says 'no function .*charge.* is registered here' && kill "$child" && wait "$child"
result a_server_leaves_what_it_has_no_function_for
child=
exit 0
