#!/bin/sh
# link-packed.sh OUT COMMAND… : links by COMMAND, which has everything but -o OUT, a program that carries its string literals
# compressed (src/cli/literals.c). Texts hold no addresses and come in the order of the files, so those of both links are the same.
set -eu
here=$(dirname "$0")
out=$1
shift

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed 's/KIND//' "$here/literals.ld" >"$work/loaded.ld"
sed 's/KIND/(NOLOAD)/' "$here/literals.ld" >"$work/room.ld"

"$@" -Wl,-T,"$work/loaded.ld" -o "$work/loaded"
objcopy -O binary --only-section=.literals "$work/loaded" "$work/literals"
"$here/embed-packed.sh" program_literals <"$work/literals" >"$work/packed.c"
"${CC:-cc}" -fPIC -Isrc -c -o "$work/packed.o" "$work/packed.c"
"$@" "$work/packed.o" -Wl,-T,"$work/room.ld" -o "$out"
