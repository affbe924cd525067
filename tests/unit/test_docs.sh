#!/usr/bin/env bash
# What the pages say is there is there: codes in docs/api.md, routes in docs/api-reference.md, folders in the maps, links, made-up files.
set -u

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
. tests/support/notes.sh

# One row for each code, in the order of hapax.h, with its status, exit code and text.
sed -n '/^\tX(.*[0-9], *\\$/{N;s/, *\\\n[\t ]*/, /};s/^\tX(\([A-Z_]*\), [0-9]*, \([0-9]*\), \([0-9]*\), "\(.*\)").*/| `\1` | \2 | \3 | \4 |/p' include/hapax.h | grep -v '`OK`' >"$dir/codes"
sed -n '/^## Codes/,$p' docs/api.md | grep '^| `' >"$dir/table"
bad=$(diff "$dir/codes" "$dir/table")
[ "$(wc -l <"$dir/codes")" -gt 20 ] || note "no codes were found in include/hapax.h"
result every_code_is_in_the_reference

# The patterns of the table of routes. What else is said about them is made out of it (tests/http/test_openapi.sh).
sed -n 's/^\t{"\([A-Z]*\)", "\([^"]*\)".*/\1 \2/p' src/api/api_routes.c |
	sed 'p;/workflow-runs\/{id}/!d;s/{id}/by-key\/{workflow}\/{key}/' | sort >"$dir/routes" # those of a run are there by key, too
[ "$(wc -l <"$dir/routes")" -gt 10 ] || note "no routes were found in src/api/api_routes.c"
sed -n 's/^### `\([A-Z]* [^`]*\)`$/\1/p' docs/api-reference.md | sort >"$dir/told"
bad=$bad$(diff "$dir/routes" "$dir/told")
result every_route_is_in_the_reference

# What only an admin may do is in the table of scopes, and nothing else is.
grep -F 'ROUTE_ADMIN' src/api/api_routes.c | sed -n 's/^\t{"\([A-Z]*\)", "\([^"]*\)".*/\1 \2/p' | sort >"$dir/admin"
grep '^| `admin` |' docs/api.md | grep -oE '`(GET|PUT|POST|DELETE) [^`]*`' | tr -d '`' | sort >"$dir/told"
[ -s "$dir/admin" ] || note "no route of admin's was found in src/api/api_routes.c"
bad=$bad$(diff "$dir/admin" "$dir/told")
result every_scope_is_in_the_reference

for folder in src/*/; do
	grep -qF "\`$folder\`" docs/ARCHITECTURE.md || note "not in docs/ARCHITECTURE.md: $folder"
	grep -q "^$folder " README.md || note "not in README.md: $folder"
done
result every_folder_is_on_the_maps

for page in README.md CONTRIBUTING.md docs/*.md examples/*/*.md; do
	while read -r link; do
		[ -e "$(dirname "$page")/${link%%#*}" ] || note "$page: no such file: $link"
	done < <(grep -oE '\]\([^)#][^)]*\)' "$page" | sed 's/^](//; s/)$//' | grep -v '^http')
	while read -r file; do
		[ -e "$file" ] || note "$page: no such file: $file"
	done < <(grep -oE '`(src|tests|scripts|examples|docs|include|packaging)/[A-Za-z0-9_/.]+`' "$page" | tr -d '`' | grep -v 'NNNN\|_NOUN\|NOUN\|NAME\|/x/\|/build/')
done
while read -r file; do
	[ -e "src/$file" ] || note "docs/ARCHITECTURE.md: no such file: src/$file"
done < <(grep -oE '`(base|db|task|model|flow|gate|act|engine|wire|serve|api|proxy|cli|sim)/[a-z_/]+\.[ch]`' docs/ARCHITECTURE.md | tr -d '`')
result every_file_that_is_named_exists

# A walk has at most 20 stations (of the API: with those that all begin with), numbered, and never comes to a file again.
sed -n '/^<!-- walks/,/^<!-- end of the walks/p' docs/ARCHITECTURE.md | awk '
	/^\*\*/ { noun = $0; sub(/^\*\*/, "", noun); sub(/\*\*.*/, "", noun); n = common; walks++
		all = noun ~ /^Every call/; delete seen; split("", seen)
		if (noun == "Gate") n = 2
		for (file in shared) if (noun != "Gate") seen[file] = 1; own = 0 }
	/^[0-9]+\. `/ { file = $2; gsub(/[`:,]/, "", file); own++
		if ($1 != own ".") print noun ": station " $1 " is the " own "th"
		if (file in seen) print noun ": comes back to " file
		if (++n > 20) print noun ": more than 20 stations"
		seen[file] = 1; if (all) { shared[file] = 1; common++ } }
	END { if (walks < 7) print "only " walks + 0 " walks were found" }' >"$dir/walks"
bad=$bad$(cat "$dir/walks")
result walks_are_short_and_never_come_back
exit 0
