#!/bin/sh
# deb.sh : what `make deb` does with what was built in BUILD: hapax_VERSION_ARCHITECTURE.deb, in the same folder.
#
# One package: the program and its service, the library and what a program needs to be built with it. Its dependencies
# are those of the symbols that are used (dpkg-shlibdeps). The shared library is found by ldconfig's trigger.
set -eu

: "${BUILD:?run this by make deb}"
version=$(sed -n 's/^.define HX_VERSION "\(.*\)"/\1/p' include/hapax.h)
soversion=${version%%.*}
architecture=$(dpkg --print-architecture)
libdir=/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)
stage=$BUILD/debian/hapax # where dpkg-shlibdeps looks for it
package=$BUILD/hapax_${version}_$architecture.deb
umask 022
rm -rf "$BUILD/debian" "$BUILD"/hapax_*.deb

# --- the files

DESTDIR=$stage PREFIX=/usr LIBDIR=$libdir ZSHDIR=/usr/share/zsh/vendor-completions packaging/install.sh install
mv "$stage/usr/share/doc/hapax/LICENSE" "$stage/usr/share/doc/hapax/copyright"
find "$stage/usr/share/man" -type f -exec gzip -9n {} +
strip --strip-unneeded --remove-section=.comment "$stage/usr/bin/hapax" "$stage$libdir/libhapax.so.$version"
strip --strip-debug --enable-deterministic-archives "$stage$libdir/libhapax.a"
install -D -m 644 packaging/hapax.service "$stage/usr/lib/systemd/system/hapax.service"
# Not enabled: it has to be told what it is in front of.
install -m 644 packaging/hapax-gate.service "$stage/usr/lib/systemd/system/hapax-gate.service"
# The URL of a store may have a password in it: for root, and (postinst) for the service to read.
install -d -m 750 "$stage/etc/hapax" "$stage/etc/hapax/workflows"
install -m 640 packaging/hapax.json "$stage/etc/hapax/"

# --- what dpkg is told of them

# dpkg-shlibdeps wants to stand in a source package.
mkdir "$stage/DEBIAN"
printf 'Source: hapax\n\nPackage: hapax\nArchitecture: any\n' >"$BUILD/debian/control"
needed=$(cd "$BUILD" && dpkg-shlibdeps -O debian/hapax/usr/bin/hapax "debian/hapax$libdir/libhapax.so.$version")
needed=${needed#shlibs:Depends=}

cat >"$stage/DEBIAN/control" <<EOF
Package: hapax
Version: $version
Architecture: $architecture
Maintainer: The Hapax developers <hapax@localhost>
Installed-Size: $(du -k -s --apparent-size "$stage" | cut -f 1)
Depends: $needed, adduser, init-system-helpers (>= 1.54)
Recommends: ca-certificates
Suggests: postgresql, redis-server
Section: database
Priority: optional
Description: exactly-once workflow engine
 Hapax moves a business process forward step by step and makes each step's
 effect happen exactly once, whatever is clicked twice, retried, delivered
 twice, killed or paused. It keeps its state in SQLite or PostgreSQL.
 .
 This package has the program with its service, the reverse proxy for
 idempotency keys (hapax gate), and the library with its header.
EOF
echo /etc/hapax/hapax.json >"$stage/DEBIAN/conffiles"
echo "activate-noawait ldconfig" >"$stage/DEBIAN/triggers"
echo "libhapax $soversion hapax (>= $version)" >"$stage/DEBIAN/shlibs"
install -m 755 packaging/postinst packaging/prerm packaging/postrm "$stage/DEBIAN/"
(cd "$stage" && find usr -type f -exec md5sum {} +) >"$stage/DEBIAN/md5sums"

dpkg-deb --build --root-owner-group "$stage" "$package" >/dev/null
echo "$package: $(($(stat -c %s "$package") / 1024)) KiB"
echo "stripped: $(($(stat -c %s "$stage/usr/bin/hapax") / 1024)) KiB hapax," \
	"$(($(stat -c %s "$stage$libdir/libhapax.so.$version") / 1024)) KiB libhapax.so"
