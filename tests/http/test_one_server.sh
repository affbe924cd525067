#!/usr/bin/env bash
# One server to a SQLite file, in processes of their own: also when PATH.lock was deleted, by a hard link, for `hapax gate`, and
# after the server was killed.
set -u
. tests/support/cli.sh

serves() { # file
	: >ready
	"$hapax" serve --db "sqlite:$1" --listen 127.0.0.1:0 --workflows flows >ready 2>log &
	server=$!
	await test -s ready
}
refused() { # file, by the server and by the gate
	exits 75 serve --db "sqlite:$1" --listen 127.0.0.1:0 --workflows flows && complains "another server has this store open" &&
		exits 75 gate --store "sqlite:$1" --listen 127.0.0.1:0 --upstream http://127.0.0.1:9 &&
		complains "another server has this store open"
}

serves hapax.db && refused hapax.db
result a_second_server_is_refused
rm hapax.db.lock && refused hapax.db && kill -0 "$server"
result also_when_the_lock_file_was_deleted
ln hapax.db hard.db && refused hard.db && refused ./hard.db
result also_by_a_hard_link
ln -s hard.db soft.db && refused soft.db
result also_by_a_link_to_a_hard_link
exits 75 db raise-fences --db sqlite:hard.db && complains "another server" && exits 0 key list --db sqlite:hapax.db
result verbs_that_need_the_store_alone_are_refused_and_others_are_not
[ "$(stat -c %a hapax.db hapax.db-wal hapax.db-shm hapax.db.lock | sort -u)" = 600 ]
result the_files_are_for_their_owner_alone
kill -9 "$server" && wait "$server" 2>/dev/null
rm -f hard.db* soft.db*
serves hapax.db && kill "$server" && wait "$server"
result a_killed_server_leaves_no_lock
server=
: >ready
"$hapax" gate --store sqlite:gate.db --listen 127.0.0.1:0 --upstream http://127.0.0.1:9 >ready 2>log &
server=$!
await test -s ready && rm gate.db.lock && refused gate.db
result the_store_of_a_gate_is_its_own
[ "$(stat -c %a gate.db gate.db-wal gate.db-shm | sort -u)" = 600 ]
result and_for_its_owner_alone
