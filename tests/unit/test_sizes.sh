#!/usr/bin/env bash
# Sizes that the pages tell are those of the program: it is packed as `make deb` packs it, and what that prints is compared with
# docs/operations.md. (`make deb` compiles anew, with Debian's flags; that is well within the 10 % that are allowed here.) When
# this fails, put the lines in that it prints.
set -u

build=$(realpath "${HAPAX_BUILD:-$PWD/build}")
if [ ! -x "$build/hapax" ] || grep -qE '__(asan|tsan)_init' "$build/libhapax.so"; then
	echo "[  SKIPPED ] the sizes of this flavour are not told anywhere"
	exit 0
fi
if ! command -v dpkg-shlibdeps >/dev/null; then
	echo "[  SKIPPED ] nothing is packed without dpkg-dev"
	exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. tests/support/notes.sh

numbers() { grep -oE '[0-9]+ KiB' | grep -oE '[0-9]+' | tr '\n' ' '; }
near() { # told measured: within 10 %
	[ $((10 * ($1 > $2 ? $1 - $2 : $2 - $1))) -le "$2" ]
}

ln -s "$build/hapax" "$build/libhapax.so" "$build/libhapax.a" "$dir/"
BUILD=$dir packaging/deb.sh >"$dir/printed" 2>"$dir/err" || note "packaging/deb.sh: $(tail -3 "$dir/err")"
sed -i "s,$dir,build/deb," "$dir/printed"
sed 's/^/# /' "$dir/printed"
read -r package program library <<<"$(numbers <"$dir/printed")"
read -r told_package told_program told_library <<<"$(grep -E '^(build/deb/hapax_.*\.deb: |stripped: )' docs/operations.md | numbers)"
[ -n "${library:-}" ] && [ -n "${told_library:-}" ] || note "three sizes were expected, in what is printed and in docs/operations.md"
result sizes_are_printed_and_told

# As it is built here; with the flags of Debian's own packages (a guard on every stack) it has some 80 KiB more.
[ "${program:-9999}" -lt 1536 ] || note "the program has ${program:-no} KiB, and should have less than 1.5 MiB"
result the_program_keeps_its_goal

near "${told_package:-0}" "${package:-1}" || note "docs/operations.md: the package has ${package:-no} KiB"
near "${told_program:-0}" "${program:-1}" || note "docs/operations.md: the program has ${program:-no} KiB"
near "${told_library:-0}" "${library:-1}" || note "docs/operations.md: the library has ${library:-no} KiB"
result and_are_the_same

# In words, in tenths of a MiB.
tenths=$(grep -oE 'one binary of about [0-9.]+ MiB' docs/comparison.md | grep -oE '[0-9]+\.[0-9]' | tr -d .)
near $((${tenths:-0} * 1024 / 10)) "${program:-1}" || note "docs/comparison.md: the program has ${program:-no} KiB"
# No other page tells the size of a program, package or library.
while read -r line; do note "told, and not measured: $line"; done < <(
	grep -nEi '(binary|program|package|library|executable|stripped)[^|.;]* [0-9.]+ ?[KM]i?B' README.md docs/*.md man/* examples/*/*.md |
		grep -vE '^docs/operations.md:[0-9]+:(stripped: |build/deb/)|one binary of about')
result no_other_page_tells_one
exit 0
