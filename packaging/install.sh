#!/bin/sh
# install.sh install | uninstall : what `make install` and `make uninstall` do, from one list.
#
#   BUILD    where the program and the libraries were built
#   DESTDIR  goes before every path, for packages; empty: this machine
#   PREFIX   /usr/local; LIBDIR  $PREFIX/lib; ZSHDIR  $PREFIX/share/zsh/site-functions
#
# Uninstalling removes the same paths, and the folder of the documentation, which is nobody else's.
set -eu

: "${BUILD:?run this by make install}"
DESTDIR=${DESTDIR:-}
PREFIX=${PREFIX:-/usr/local}
LIBDIR=${LIBDIR:-$PREFIX/lib}
ZSHDIR=${ZSHDIR:-$PREFIX/share/zsh/site-functions}
doc=$PREFIX/share/doc/hapax
version=$(sed -n 's/^.define HX_VERSION "\(.*\)"/\1/p' include/hapax.h)
soversion=${version%%.*}

case ${1:-} in
install)
	put() { install -D -m "$1" "$2" "$DESTDIR$3"; } # mode file path
	link() { ln -sfn "$1" "$DESTDIR$2"; }           # target path
	;;
uninstall)
	put() { rm -f "$DESTDIR$3"; }
	link() { rm -f "$DESTDIR$2"; }
	;;
*)
	echo "usage: install.sh install | uninstall" >&2
	exit 2
	;;
esac

put 755 "$BUILD/hapax" "$PREFIX/bin/hapax"

put 644 "$BUILD/libhapax.so" "$LIBDIR/libhapax.so.$version"
link "libhapax.so.$version" "$LIBDIR/libhapax.so.$soversion"
link "libhapax.so.$soversion" "$LIBDIR/libhapax.so"
put 644 "$BUILD/libhapax.a" "$LIBDIR/libhapax.a"
put 644 include/hapax.h "$PREFIX/include/hapax.h"
sed -e "s|@PREFIX@|$PREFIX|" -e "s|@LIBDIR@|$LIBDIR|" -e "s|@VERSION@|$version|" packaging/hapax.pc.in |
	put 644 /dev/stdin "$LIBDIR/pkgconfig/hapax.pc"

for page in man/*.[1-8]; do
	put 644 "$page" "$PREFIX/share/man/man${page##*.}/${page##*/}"
done
# Made by the program itself, so that they know its commands.
script=$(mktemp)
trap 'rm -f "$script"' EXIT
[ "$1" = uninstall ] || "$BUILD/hapax" completion bash >"$script"
put 644 "$script" "$PREFIX/share/bash-completion/completions/hapax"
[ "$1" = uninstall ] || "$BUILD/hapax" completion zsh >"$script"
put 644 "$script" "$ZSHDIR/_hapax"

# Laid out as in the tree, so that the pages find each other.
find README.md LICENSE docs examples -type f ! -name '*.pyc' | while read -r file; do
	mode=644
	[ ! -x "$file" ] || mode=755
	put $mode "$file" "$doc/$file"
done

[ "$1" = install ] || rm -rf "$DESTDIR$doc"
# The linker of this machine has a list of its libraries. Only root can refresh it, and only root needs to.
if [ -z "$DESTDIR" ] && [ "$(id -u)" -eq 0 ]; then
	ldconfig
fi
