#!/bin/sh
# embed-packed.sh NAME : writes C that holds what comes in, compressed, as `const struct packed NAME` (see src/base/packed.h).
set -eu
export LC_ALL=C

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/text"
"$(dirname "$0")/pack.sh" "$work/text" >"$work/packed"
echo "/* Made by scripts/embed-packed.sh. */"
echo '#include "base/packed.h"'
echo "static const unsigned char $1_bytes[] = {"
od -An -v -tx1 "$work/packed" | sed 's/ \(..\)/0x\1,/g'
echo '};'
echo "extern const struct packed $1;"
printf 'const struct packed %s = {%s_bytes, sizeof %s_bytes, %d};\n' "$1" "$1" "$1" "$(wc -c <"$work/text")"
