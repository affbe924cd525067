#!/usr/bin/env bash
# hapax audit, by its output and exit codes, on a store that is not there, empty, served, and tampered with. What it finds
# is tests/contract/test_audit.c.
set -u
. tests/support/cli.sh

# sql FILE: runs the SQL on standard input, past hapax.
cat >sql.c <<'END'
#include <sqlite3.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	static char text[1 << 16];
	sqlite3 *db;

	return argc != 2 || !fread(text, 1, sizeof text - 1, stdin) || sqlite3_open(argv[1], &db) ||
	       sqlite3_busy_timeout(db, 10000) || sqlite3_exec(db, text, 0, 0, 0) || sqlite3_close(db);
}
END
gcc -o sql sql.c -lsqlite3 || exit 1

# --- stores that cannot be audited

exits 0 audit --help && says "usage: hapax audit" && says "default: sqlite:hapax.db" && says "a promise was broken"
result help
exits 4 audit && complains "hapax.db: there is no store here" && ! complains migrate && silent out && [ ! -e hapax.db ]
result a_missing_store_is_not_made
exits 78 audit --db mysql://root:secret@host/db && complains "sqlite:PATH" && ! complains secret
result a_url_that_is_not_valid
echo "this is a letter, not a database, and it is long enough to be looked at as one" >letter.db
exits 69 audit --db sqlite:letter.db && complains letter.db
result what_is_no_database
"$hapax" db migrate --db sqlite:old.db >/dev/null && echo "DELETE FROM hx_schema_version" | ./sql old.db
exits 78 audit --db sqlite:old.db && complains "hapax db migrate" && silent out
result a_schema_that_is_behind
exits 2 audit now && complains '"now"' && exits 2 audit --jsn && complains "did you mean --json?"
result arguments_that_are_not_valid

# --- a store that is whole

"$hapax" db migrate >/dev/null
exits 0 audit && silent err && lines 1 &&
	says "whole: subjects 0, history rows 0, steps 0, accounts 0, ledger entries 0, batches 0, items 0; 0."
result an_empty_store
cat >flows/doc.json <<'END'
{ "workflow": "doc", "kind": "entity", "status_types": ["draft", "done"], "initial_status": "draft",
  "steps": [ { "step_id": 1, "step_key": "finish", "status": "draft", "successful_state": "done" } ] }
END
"$hapax" serve --listen 127.0.0.1:0 --workflows flows >ready 2>log &
server=$!
await test -s ready
HAPAX_SERVER=$(sed 's/^ready //' ready)
export HAPAX_SERVER
exits 0 entity create doc a && exits 0 entity fire doc a finish && exits 0 audit && silent err && lines 1 &&
	says "whole: subjects 1, history rows 2, "
result beside_a_server
exits 0 audit --json && silent err && lines 1 &&
	says '{"whole":true,"subjects":1,"historyRows":2,"steps":0,"accounts":0,"ledgerEntries":0,"batches":0,"items":0,"ms":'
result as_json

# --- on a terminal

TERM=xterm script -qec "'$hapax' audit" /dev/null >out 2>err </dev/null
says "$(printf '\r\033[K')audit: subjects, subjects 1, rows 3" && says "$(printf '\r\033[K')whole: subjects 1, "
result a_line_of_progress_on_a_terminal

# --- and one that is not

echo "UPDATE hx_history SET op = op + 1 WHERE seq = 2" | ./sql hapax.db
exits 1 audit && says "not whole, as far as it was read: " && [ "$(wc -l <err)" -eq 1 ] &&
	complains "hapax: entity:doc:a, history row 2: hash: expected "
result a_changed_row_is_named
exits 1 audit --json && lines 1 && says '{"whole":false,' && says '"violation":{"subject":"entity:doc:a","id":' &&
	says '"row":"history row","seq":2,"what":"hash","expected":"' && complains '"code":"PROMISE_BROKEN"'
result as_json_too
echo "UPDATE hx_history SET op = op - 1 WHERE seq = 2; UPDATE hx_subject SET fence = 7" | ./sql hapax.db
exits 1 audit && complains "entity:doc:a: fence: expected 0, found 7"
result what_was_expected_and_found
echo "UPDATE hx_subject SET fence = 0" | ./sql hapax.db
exits 0 audit
result and_put_right_again

# --- PostgreSQL, where there is one

if [ -n "${HAPAX_TEST_PG:-}" ]; then
	schema=audit_$$
	url="$HAPAX_TEST_PG?options=-csearch_path%3D$schema"
	psql -qX "$HAPAX_TEST_PG" -c "CREATE SCHEMA $schema" && exits 78 audit --db "$url" && exits 0 db migrate --db "$url" &&
		exits 0 audit --db "$url" && says "whole: subjects 0" &&
		psql -qX "$url" -c "INSERT INTO hx_history VALUES (5, 1, '', 'a', 1, 0, 1, 'n', 1, '')" &&
		exits 1 audit --db "$url" && complains "subject 5, history row 1: subject: expected the subject of this row"
	result postgres
	psql -qX "$HAPAX_TEST_PG" -c "DROP SCHEMA $schema CASCADE" 2>/dev/null
fi

# --- the manual

"$hapax" audit --help | grep -oE '^  --[a-z-]+' | tr -d ' ' >options && in_manual hapax-audit.1 <options &&
	"$hapax" audit --help | sed -n 's/^  \([0-9][0-9]*\)  .*/.B \1/p' | sort -u >codes && test -s codes &&
	in_manual hapax-audit.1 <codes && grep -qF "hapax audit" "$root/man/hapax.1"
result the_manual_has_every_option_and_exit_code
exit 0
