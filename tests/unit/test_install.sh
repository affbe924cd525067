#!/usr/bin/env bash
# make install and make uninstall (packaging/install.sh, which they run), and what a program needs that is built with what
# was installed: pkg-config, header, shared and static library. The Debian package is another matter: make package-test.
set -u

build=${HAPAX_BUILD:-$PWD/build}
if [ ! -x "$build/hapax" ] || grep -qE '__(asan|tsan)_init' "$build/libhapax.so"; then
	echo "[  SKIPPED ] a program cannot be built with the library of this flavour"
	exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
: >"$dir/out"

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		head -20 "$dir/out"
	fi
}
run() { BUILD=$build packaging/install.sh "$@" >"$dir/out" 2>&1; }
there() { # path…
	local path bad=
	for path; do [ -s "$path" ] || bad="$bad $path"; done
	[ -z "$bad" ] || { echo "missing:$bad" >"$dir/out" && false; }
}

# --- what is installed, and where

at=$dir/dest/opt/hapax
DESTDIR=$dir/dest PREFIX=/opt/hapax run install && there "$at"/{bin/hapax,include/hapax.h,lib/libhapax.a,lib/libhapax.so} \
	"$at"/share/doc/hapax/{README.md,docs/api.md,examples/once/once.c} "$at/lib/pkgconfig/hapax.pc"
result install
(cd man && for page in *.[1-8]; do cmp "$page" "$at/share/man/man${page##*.}/$page" || exit 1; done) >"$dir/out" 2>&1
result every_page_of_the_manual
{
	"$build/hapax" completion bash | cmp - "$at/share/bash-completion/completions/hapax" &&
		"$build/hapax" completion zsh | cmp - "$at/share/zsh/site-functions/_hapax" && there "$at/share/zsh/site-functions/_hapax"
} >"$dir/out" 2>&1
result completion_in_both_shells
[ "$(find "$dir/dest" -mindepth 1 -maxdepth 2 | sort | tr '\n' ' ')" = "$dir/dest/opt $dir/dest/opt/hapax " ] &&
	! grep -rlF "$dir" "$at/lib/pkgconfig" >"$dir/out"
result nothing_beside_the_prefix_and_no_destdir_in_the_files
"$at/bin/hapax" --version >"$dir/out" 2>&1
result the_program_runs

# --- the shared library

version=$("$at/bin/hapax" --version | sed 's/hapax //')
[ "$(readlink "$at/lib/libhapax.so")" = "libhapax.so.${version%%.*}" ] &&
	[ "$(readlink "$at/lib/libhapax.so.${version%%.*}")" = "libhapax.so.$version" ] &&
	readelf -d "$at/lib/libhapax.so" >"$dir/out" && grep -q "soname: \[libhapax.so.${version%%.*}\]" "$dir/out"
result names_and_links
nm -D --defined-only "$at/lib/libhapax.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort >"$dir/shown"
grep -v '^hx_' "$dir/shown" >"$dir/out"
[ ! -s "$dir/out" ] && [ -s "$dir/shown" ]
result it_shows_hx_and_nothing_else
# Every function that the header declares can be linked with.
grep -oE '\bhx_[a-z0-9_]+\(' include/hapax.h | tr -d '(' | sort -u >"$dir/declared"
comm -13 "$dir/declared" "$dir/shown" | sed 's/^/not in hapax.h: /' >"$dir/out"
grep -vE '^[^a-z]*\*' include/hapax.h | grep -oE '^[a-z].*\bhx_[a-z0-9_]+\(' | grep -oE 'hx_[a-z0-9_]+\($' | tr -d '(' | sort -u |
	comm -23 - "$dir/shown" | sed 's/^/declared, but not shown: /' >>"$dir/out"
[ ! -s "$dir/out" ]
result and_just_what_the_header_declares

# --- a program of one's own

cat >"$dir/own.c" <<'EOF'
#include <hapax.h>
#include <stdio.h>
int main(void)
{
	printf("%s %s\n", hx_version(), hx_code_name(HX_CLAIM_FAILED));
	return 0;
}
EOF
pc() { PKG_CONFIG_PATH=$at/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir/dest pkg-config "$@" hapax; }
says() { [ "$("$@" 2>&1)" = "$version CLAIM_FAILED" ]; }
[ "$(pc --modversion)" = "$version" ]
result pkg_config_knows_the_version
# shellcheck disable=SC2046
cc -Wall -Wextra -Werror -std=c99 -o "$dir/own" "$dir/own.c" $(pc --cflags --libs) >"$dir/out" 2>&1 &&
	LD_LIBRARY_PATH=$at/lib says "$dir/own"
result a_program_links_with_the_shared_library
# shellcheck disable=SC2046
cc -o "$dir/own" "$dir/own.c" $(pc --cflags) "$at/lib/libhapax.a" $(pc --static --libs-only-l | sed 's/-lhapax//') -pthread \
	>"$dir/out" 2>&1 && says "$dir/own"
result a_program_links_with_the_static_library

# --- elsewhere, and away

DESTDIR=$dir/lib PREFIX=/usr LIBDIR=/usr/lib/some-where ZSHDIR=/zsh run install &&
	there "$dir"/lib/usr/lib/some-where/{libhapax.so,pkgconfig/hapax.pc} "$dir/lib/zsh/_hapax" && [ ! -e "$dir/lib/usr/lib/libhapax.a" ] &&
	grep -q '^libdir=/usr/lib/some-where$' "$dir/lib/usr/lib/some-where/pkgconfig/hapax.pc"
result another_place_for_libraries
touch "$at/bin/other" "$at/share/doc/other"
DESTDIR=$dir/dest PREFIX=/opt/hapax run uninstall
find "$dir/dest" ! -type d >"$dir/out"
[ "$(sort "$dir/out" | tr '\n' ' ')" = "$at/bin/other $at/share/doc/other " ]
result uninstall_takes_away_what_install_brought
DESTDIR=$dir/dest PREFIX=/opt/hapax run uninstall
result a_second_time_there_is_nothing_to_do

# --- the unit, where there is systemd to ask

if command -v systemd-analyze >/dev/null; then
	mkdir -p "$dir/unit"
	for unit in hapax hapax-gate; do
		sed "s|/usr/bin/hapax|$build/hapax|" packaging/$unit.service >"$dir/unit/$unit.service"
		systemd-analyze verify --man=no "$dir/unit/$unit.service" >"$dir/out" 2>&1 && ! grep $unit.service "$dir/out"
		result systemd_finds_nothing_wrong_with_the_unit_of_$unit
	done
fi
exit 0
