#!/usr/bin/env bash
# hapax init: what it writes is valid and served, its README is walked word by word, nothing is overwritten, and no half of a
# project is left by an error or a kill.
set -u
. tests/support/cli.sh
files() { (cd "$1" && find . -mindepth 1 | sort | tr '\n' ' '); }
left() { find . -maxdepth 1 -name ".hapax-init.*"; }
project='./README.md ./hapax.json ./workflows ./workflows/order.json ./workflows/welcome.json '

# --- where it goes

exits 0 init shop && silent err && [ "$(files shop)" = "$project" ] && says shop/workflows/order.json && says "cd shop" &&
	says "hapax serve --config hapax.json" && [ -z "$(left)" ]
result a_new_folder
mkdir empty && exits 0 init empty/ && [ "$(files empty)" = "$project" ]
result an_empty_folder
mkdir -p here && (cd here && exits 0 init . && [ "$(files .)" = "$project" ])
result the_current_folder
mkdir -p with/.git && touch with/notes && exits 0 init with && [ "$(files with)" = "./.git ./README.md ./hapax.json ./notes ${project#./README.md ./hapax.json }" ]
result a_folder_with_other_things_in_it
umask 027
exits 0 init "a b" --json && jq -e '.folder == "a b" and (.files | length) == 4' <out >/dev/null && [ "$(stat -c %a "a b" "a b/workflows" "a b/hapax.json" | tr '\n' ' ')" = "750 750 640 " ]
result json_and_the_umask
umask 022

# --- nothing is overwritten

same() { # folder, command…; it must not change anything
	local before
	before=$(find "$1" -type f -exec sha256sum {} + | sort && find "$1")
	"${@:2}" && [ "$before" = "$(find "$1" -type f -exec sha256sum {} + | sort && find "$1")" ]
}
same shop exits 5 init shop && complains "shop/workflows is there already: nothing was written" && silent out
result a_second_time
for entry in README.md hapax.json workflows; do
	mkdir "one-$entry" && echo mine >"one-$entry/$entry"
	same "one-$entry" exits 5 init "one-$entry" && complains "one-$entry/$entry is there already" || break
done && mkdir linked && ln -s nowhere linked/hapax.json && exits 5 init linked && complains linked/hapax.json && [ "$(files linked)" = "./hapax.json " ]
result files_that_are_in_the_way_are_named
touch file && exits 5 init file && complains "file is there already" && exits 5 init file --json && complains '"code":"ALREADY_EXISTS"'
result a_file_in_its_place
exits 70 init no/such/place && complains "no/such/place cannot be made: No such file" && [ ! -e no ] && exits 2 init && complains "init wants DIR" &&
	exits 2 init a b && exits 2 init ""
result places_that_there_are_not

# --- no half of one: a file that is too large for the limit is an error, or kills

(
	trap '' XFSZ
	ulimit -f 1
	exits 70 init broken
) && complains "README.md cannot be written: File too large" && [ ! -e broken ] && [ -z "$(left)" ]
result an_error_in_the_middle_leaves_nothing
mkdir before && (
	trap '' XFSZ
	ulimit -f 1
	exits 70 init before
) && [ "$(files before)" = "" ]
result nor_in_a_folder_that_was_there
(
	ulimit -c 0 -f 1
	"$hapax" init killed >out 2>err
) 2>/dev/null
[ ! -e killed ] && [ "$(left | wc -l)" = 1 ] && exits 0 init killed && [ "$(files killed)" = "$project" ]
result a_kill_in_the_middle_leaves_no_project
if [ "$(id -u)" -ne 0 ]; then
	mkdir shut && chmod 555 shut && exits 70 init shut && exits 70 init shut/in && [ "$(files shut)" = "" ]
	result a_folder_that_cannot_be_written
fi
"$hapax" init unheard >/dev/full 2>err
[ $? -eq 70 ] && [ "$(files unheard)" = "$project" ]
result output_that_cannot_be_written

# --- what it writes is good, and its README is true

exits 0 check --strict shop/workflows --config shop/hapax.json && exits 0 graph shop/workflows/order.json && exits 0 graph shop/workflows/welcome.json
result it_is_valid
. "$root/tests/support/walk.sh"
trap walk_end EXIT
cd shop || exit 1
mkdir bin && ln -s "$hapax" bin/hapax
read -r _ port < <(walk_ports 7411)
export PATH=$PWD/bin:$PATH HAPAX_LISTEN=127.0.0.1:$port HAPAX_SERVER=http://127.0.0.1:$port
cp README.md page.md
walk 8
# What init printed is what the README walks through.
cd .. && exits 0 init again && sed -n 's/^  \(hapax .*\)/\1/p' out >printed && [ "$(wc -l <printed)" -eq 3 ] &&
	while read -r line; do grep -qxF -- "$line" shop/README.md || exit 1; done <printed
result the_printed_commands_are_those_of_the_readme
exit 0
