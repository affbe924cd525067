#!/usr/bin/env bash
# No command on a page is one that nobody tries. Those in blocks are walked (test_docs_pages.sh, test_example_*.sh); here is
# shown that none stands in another kind of block, that make knows what it is asked for, and that every `hapax …` within a
# sentence is what the program's own help says.
set -u
hapax=${HAPAX_BUILD:-$PWD/build}/hapax
if [ ! -x "$hapax" ]; then
	echo "[  SKIPPED ] the program is not built in this flavour"
	exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
page_py() { python3 tests/support/page.py "$@"; }
pages=(README.md CONTRIBUTING.md docs/*.md examples/*/README.md)
. tests/support/notes.sh

bad=$(page_py stray "${pages[@]}" 2>&1)
result every_command_stands_in_a_block_that_is_run

# All that is left out of the walks is what make does, and what only a machine of its own can show.
page_py list "${pages[@]}" >"$dir/commands" || note "page.py does not understand a page"
[ "$(grep -vc '  # not run: ' "$dir/commands")" -gt 50 ] || note "fewer commands than there were"
grep '  # not run: ' "$dir/commands" | grep -vE '^[^ ]* make |^docs/operations.md.* make package-test ' >"$dir/left" && note "$(cat "$dir/left")"
result what_no_walk_runs

# In blocks, and in sentences. What the inner pass would do is not asked.
{
	sed -n 's/^[^ ]* make \([ a-zA-Z_=./-]*\).*  # not run: .*/\1/p' "$dir/commands"
	grep -ohE '`make [^`]*`' "${pages[@]}" | sed 's/`make //; s/`//; s/&&.*//; s/[^ ]*….*//'
} | tr ' ' '\n' | grep -v '^$' | sort -u >"$dir/targets"
[ "$(wc -l <"$dir/targets")" -gt 10 ] || note "no make commands were found"
# shellcheck disable=SC2046
env -u MAKEFLAGS -u MAKELEVEL make -n MAKE=: $(cat "$dir/targets") >"$dir/out" 2>&1 || note "$(tail -1 "$dir/out")"
result make_knows_every_target

# hapax VERB…, up to the first word that is not one, and its options.
check_inline() { # page, words…
	local page=$1 words=() text="${*:2}" help option
	shift 2 # page, hapax
	while [ $# -gt 0 ] && [[ $1 =~ ^[a-z]+(\|[a-z]+)*$ ]] && "$hapax" "${words[@]}" "${1%%|*}" --help >"$dir/help" 2>&1; do
		words+=("${1%%|*}")
		shift
	done
	[ "${#words[@]}" -gt 0 ] || [ $# -eq 0 ] || [[ ${1:-} = -* ]] || note "$page: no such command: $text"
	help=$("$hapax" "${words[@]}" --help 2>&1)
	for option in "$@"; do
		[[ $option =~ ^--[a-z] ]] || continue
		grep -qF -- "${option%%[=…]*}" <<<"$help" || note "$page: hapax ${words[*]} has no $option: $text"
	done
}
set -f
grep -onE '`hapax [^`]*`' "${pages[@]}" | sort -u >"$dir/inline"
[ "$(wc -l <"$dir/inline")" -gt 30 ] || note "no inline commands were found"
while IFS= read -r line; do
	text=${line#*\`}
	# shellcheck disable=SC2086
	check_inline "${line%%:\`*}" ${text%\`*}
done <"$dir/inline"
result every_hapax_in_a_sentence_is_a_command
exit 0
