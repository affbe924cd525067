#!/usr/bin/env bash
# Mistakes that were reported of other systems (tests/explore/README.md): each is found, by the shortest story, which is checked in; each
# mended twin is clean within the same bound. With WRITE=1 the stories are written.
set -u
. tests/support/cli.sh
cd "$root/tests/explore" || exit 1

world_of() { # name
	[ ! -e "$1.world.json" ] || printf '%s\n' --world "$1.world.json"
}
# The story alone, without what was covered.
explored() { # name, code
	# shellcheck disable=SC2046
	exits "$2" explore "$1.json" $(world_of "$1") --mishaps 1 --seconds 10 --brief
}
try() { # name
	explored "$1" 1 || return 1
	sed -n '/^found: /,/^[0-9,]* scenario/p' "$dir/out" | sed '$d' >"$dir/story"
	[ -z "${WRITE-}" ] || cp "$dir/story" "$1.story"
	diff "$1.story" "$dir/story" && explored "$1.mended" 0 && says_like '^complete: ' && ! says 'not reached$'
}
n=0
for file in *.mended.json; do
	name=${file%.mended.json}
	try "$name"
	result "${name//-/_}"
	grep -q "^| \`$name\` | https://" README.md
	result "${name//-/_}_has_its_source"
	n=$((n + 1))
done
[ "$n" -ge 10 ]
result there_are_ten
exit 0
