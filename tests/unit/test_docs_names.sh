#!/usr/bin/env bash
# Names on the pages that are names in the code: mutants, metrics, and the places within pages that links lead to.
set -u

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
pages=(README.md CONTRIBUTING.md docs/*.md examples/*/README.md)
. tests/support/notes.sh

# Behind "mutants", to the end of the line; name-* stands for several.
grep -v '^#' tests/mutants/list | awk '{ print $1 }' >"$dir/mutants"
grep -oE 'mutants? `.*' docs/guarantees.md | grep -oE '`[a-z*-]+`' | tr -d '`' | sort -u >"$dir/told"
[ "$(wc -l <"$dir/told")" -gt 20 ] || note "no mutants were found in docs/guarantees.md"
while read -r name; do
	grep -qx -- "${name//\*/.*}" "$dir/mutants" || note "docs/guarantees.md: no such mutant: $name"
done <"$dir/told"
result every_mutant_exists

# The numbers of guarantees and assumptions have no gap, and nobody refers to one that is not there.
for letter in A G; do
	grep -oE "^(\| ${letter}[0-9]+ \||- \*\*${letter}[0-9]+\.)" docs/guarantees.md | grep -oE "[0-9]+" >"$dir/numbers"
	seq "$(wc -l <"$dir/numbers")" | cmp -s - "$dir/numbers" || note "the numbers of $letter are not 1, 2, 3 …"
	grep -oE "\b${letter}[0-9]+\b" docs/guarantees.md | tr -d "$letter" | sort -u | grep -vxFf "$dir/numbers" | sed "s/^/no such line: $letter/" >"$dir/strange"
	[ ! -s "$dir/strange" ] || note "$(cat "$dir/strange")"
done
result guarantees_are_numbered

# Also those that a histogram has; and the engine's counters, whose names are made of its list of them.
{
	sed -nE 's/^\tX\(([a-z_]+), ".*/hapax_\1_total/p' src/engine/engine.h
	grep -rhoE '"hapax_[a-z_]+' src/api src/serve src/proxy | tr -d '"' | sed 'p; s/_bucket$//; p; s/$/_sum/; p; s/_sum$/_count/'
} | sort -u >"$dir/metrics"
grep -ohE '`hapax_[a-z_]+' "${pages[@]}" | tr -d '`' | sort -u >"$dir/told"
[ "$(wc -l <"$dir/told")" -gt 20 ] || note "no metrics were found in the docs"
while read -r name; do
	grep -qx -- "$name" "$dir/metrics" || note "no such metric: $name, in $(grep -lF "$name" "${pages[@]}" | tr '\n' ' ')"
done < <(grep -v '^hapax_owner$' "$dir/told")
result every_metric_exists

# A heading's anchor, as GitHub makes it.
anchors() { # page
	awk '/^```/ { on = !on } !on && /^#+ /' "$1" | sed 's/^#* //; s/\[\([^]]*\)\]([^)]*)/\1/g' | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}
for page in "${pages[@]}"; do anchors "$page" | sed "s|^|$page#|"; done >"$dir/places"
for page in "${pages[@]}"; do
	folder=$(dirname "$page")/
	while IFS='#' read -r file place; do
		[ -n "$file" ] && file=$(realpath -m --relative-to=. "$folder$file") || file=$page
		[[ $file != *.md ]] || grep -qxF -- "$file#$place" "$dir/places" || note "$page: no such place: $file#$place"
	done < <(grep -oE '\]\([^)]*#[^)]*\)' "$page" | sed 's/^](//; s/)$//' | grep -v '^http')
done
result every_place_that_is_linked_exists
exit 0
