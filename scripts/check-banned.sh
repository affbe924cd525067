#!/bin/sh
# check-banned.sh [ROOT] : functions that write without a bound, or keep hidden state, are not called here.
# Use strbuf, snprintf or memcpy with a length that was checked, and strtok_r or a slice.
set -eu
export LC_ALL=C
cd "${1:-.}"

dirs=
for dir in include src tests bench examples; do
	[ ! -d "$dir" ] || dirs="$dirs $dir"
done
# shellcheck disable=SC2086
if [ -n "$dirs" ] &&
	grep -rnE --include='*.[ch]' '(^|[^A-Za-z0-9_])(strcpy|strcat|sprintf|vsprintf|gets|strtok)[[:space:]]*\(' $dirs; then
	echo "check-banned: these functions are banned, see scripts/check-banned.sh" >&2
	exit 1
fi
