#!/usr/bin/env bash
# hapax db status, migrate, backup and raise-fences, by their output and exit codes; help and manual say the same.
set -u

hapax=${HAPAX_BUILD:-$PWD/build}/hapax
man=$PWD/man/hapax.1
operations=$PWD/docs/operations.md
if [ ! -x "$hapax" ]; then
	echo "[  SKIPPED ] the program is not built in this flavour"
	exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset HAPAX_DB

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		head -20 "$dir/out" "$dir/err"
	fi
}

# Runs hapax and compares its exit code; standard output and error are in out and err.
exits() { # code, arguments…
	local wanted=$1 code
	shift
	"$hapax" "$@" >"$dir/out" 2>"$dir/err"
	code=$?
	[ "$code" -eq "$wanted" ] || { echo "hapax $*: exit code $code, not $wanted" && false; }
}
says() { grep -qF -- "$1" "$dir/out"; }
complains() { grep -qF -- "$1" "$dir/err"; }
silent() { [ ! -s "$dir/$1" ]; }
is() { [ "$(cat "$dir/$1")" = "$2" ]; }

# sql FILE: runs the SQL on standard input, past hapax.
cat >"$dir/sql.c" <<'END'
#include <sqlite3.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	static char text[1 << 20];
	sqlite3 *db;

	return argc != 2 || !fread(text, 1, sizeof text - 1, stdin) || sqlite3_open(argv[1], &db) ||
	       sqlite3_exec(db, text, 0, 0, 0) || sqlite3_close(db);
}
END
gcc -o "$dir/sql" "$dir/sql.c" -lsqlite3 || exit 1

# --- help, version, what is not known

exits 0 --version && [ "$(cat "$dir/out")" = "hapax 0.1.0" ]
result version
exits 0 --help && says "db status" && says "db migrate" && silent err
result help
exits 0 db --help && says "usage: hapax db status" && says "usage: hapax db migrate"
result help_of_a_noun
exits 0 db migrate --help && says "default: sqlite:hapax.db" && says "environment: HAPAX_DB" && says "exit codes" &&
	exits 0 db migrate --db postgres://nowhere -h && says "usage: hapax db migrate"
result help_of_a_command_shows_defaults
exits 2 && complains "usage: hapax" && silent out
result no_command
exits 2 bd && complains 'did you mean "db"?' && silent out
result an_unknown_noun
exits 2 db stauts && complains 'did you mean "db status"?' && exits 2 db migrat && complains '"db migrate"?'
result an_unknown_verb
exits 2 db && complains "hapax db --help"
result a_noun_alone
exits 2 db status --jsn && complains "did you mean --json?" && exits 2 db status --print && complains "no option --print"
result an_unknown_option
exits 2 db status --db && complains "--db needs a value" && exits 2 db status --db= && complains "--db is empty" &&
	exits 2 db status --json=yes && complains "--json takes no value" && exits 2 db status now && complains '"now"'
result options_that_are_not_valid
exits 2 db "$(printf 'st\033[31m\natus')" && ! grep -q "$(printf '\033')" "$dir/err" && [ "$(wc -l <"$dir/err")" -eq 1 ]
result what_is_repeated_is_made_printable
exits 2 bd --json && is err '{"code":"VALIDATION_ERROR","title":"the request is not valid","detail":"there is no command \"bd\"; did you mean \"db\"?"}'
result an_error_as_json
exits 69 db status --db postgres://nobody@127.0.0.1:1/x && complains "postgres: connection to server" && ! grep -q '  \| $' err
result what_libpq_says_is_one_line
exits 2 zebra && is err 'hapax: there is no command "zebra": `hapax --help` lists them'
result a_command_that_nothing_is_near

# --- a store that is not there

exits 4 db status && complains "hapax.db: there is no store here" && complains "hapax db migrate makes one" && silent out && [ -z "$(ls hapax* 2>/dev/null)" ]
result status_of_a_missing_store_makes_none
exits 0 db migrate --print && says "CREATE TABLE hx_subject" && [ -z "$(ls hapax* 2>/dev/null)" ]
result print_for_a_missing_store_makes_none
exits 69 db migrate --db sqlite:no/such/folder.db && complains "no/such/folder.db"
result a_folder_that_does_not_exist
exits 78 db status --db mysql://root:secret@host/db && complains "sqlite:PATH" && ! complains secret
result a_url_that_is_not_valid

# --- migrating

"$hapax" db migrate --print >"$dir/by_hand.sql"
exits 0 db migrate && says "brought from schema 0 to " && [ -f hapax.db ]
result migrate_makes_the_store
newest=$(sed 's/.* to //' "$dir/out")
exits 0 db migrate && says "schema $newest, nothing to do"
result a_second_time_there_is_nothing_to_do
exits 0 db migrate --print && silent out
result and_nothing_to_print
exits 0 db status && says "schema   $newest" && says "program  $newest" && silent err
result status
exits 0 db status --json &&
	is out '{"store":"sqlite:hapax.db","schema":'"$newest"',"known":'"$newest"',"state":"current"}'
result status_as_json
exits 0 db migrate --json && is out '{"store":"sqlite:hapax.db","before":'"$newest"',"schema":'"$newest"'}'
result migrate_as_json
exits 0 db migrate --print --json --db sqlite:new.db && says '{"schema":0,"sql":"BEGIN' && says 'COMMIT;\n"}' &&
	[ "$(wc -l <"$dir/out")" -eq 1 ]
result print_as_json

"$dir/sql" by_hand.db <"$dir/by_hand.sql" && exits 0 db status --db sqlite:by_hand.db
result what_was_printed_can_be_run_by_hand

# --- where the URL comes from

HAPAX_DB=sqlite:by_env.db exits 0 db migrate && [ -f by_env.db ]
result the_environment
HAPAX_DB=sqlite:wrong.db exits 0 db migrate --db sqlite:by_flag.db && [ -f by_flag.db ] && [ ! -e wrong.db ]
result a_flag_comes_before_the_environment
HAPAX_DB='' exits 0 db status && says "sqlite:hapax.db"
result an_empty_variable_says_nothing

# --- stores that do not fit

echo "DELETE FROM hx_schema_version" | "$dir/sql" hapax.db
exits 78 db status && says "schema   0" && complains "run \`hapax db migrate\`"
result a_schema_that_is_behind
echo "INSERT INTO hx_schema_version VALUES (9999, 'future')" | "$dir/sql" hapax.db
cp hapax.db before.db
exits 78 db status --json && says '"schema":9999' && says '"state":"newer"' && complains '"code":"SCHEMA_MISMATCH"'
result a_schema_that_is_newer
exits 78 db migrate && complains 9999 && exits 78 db migrate --print && silent out && cmp -s hapax.db before.db
result is_refused_and_left_alone
echo "this is a letter, not a database, and it is long enough to be looked at as one" >letter.db
cp letter.db letter
exits 69 db status --db sqlite:letter.db && complains "letter.db" && exits 69 db migrate --db sqlite:letter.db &&
	cmp -s letter letter.db
result what_is_no_database_is_left_alone

# --- beside a server, which holds the lock

exits 0 db migrate --db sqlite:served.db
(
	flock -n 8 && flock -n 9 && exits 0 db status --db sqlite:served.db &&
		exits 0 db migrate --db sqlite:served.db && says "nothing to do" &&
		exits 75 db migrate --db sqlite:fresh.db && complains "another server" && [ ! -e fresh.db ]
) 8>served.db.lock 9>fresh.db.lock
result beside_a_server

"$hapax" db migrate --print --db sqlite:new.db >/dev/full 2>"$dir/err"
[ $? -eq 70 ] && complains "standard output"
result output_that_cannot_be_written_is_an_error

# --- backup, and what a restore needs

exits 0 db backup copy.db --db sqlite:served.db && says "copy.db: " && says "checked" && silent err && [ -f copy.db ] &&
	[ "$(stat -c %a copy.db)" = 600 ] && exits 0 db status --db sqlite:copy.db
result backup
rm copy.db*
exits 0 db backup "a copy?&%23.db" --db sqlite:served.db --json && is out \
	'{"file":"a copy?&%23.db","bytes":'"$(stat -c %s 'a copy?&%23.db')"'}' && [ "$(ls | grep -c '^a copy')" -eq 1 ]
result backup_as_json_into_a_strange_name
echo mine >mine
exits 5 db backup mine --db sqlite:served.db && complains "is there already" && is mine mine &&
	exits 5 db backup . --db sqlite:served.db && complains "is a folder" && exits 5 db backup served.db --db sqlite:served.db
result backup_overwrites_nothing
exits 70 db backup no/folder/copy.db --db sqlite:served.db && complains "no/folder/copy.db cannot be written" &&
	exits 2 db backup --db sqlite:served.db && exits 2 db backup a b --db sqlite:served.db
result backup_to_where_it_cannot_be_written
exits 4 db backup copy.db --db sqlite:missing.db && complains "(--db says where it is)" && exits 78 db backup copy.db --db sqlite::memory: &&
	exits 69 db backup copy.db --db sqlite:letter.db && exits 78 db backup copy.db --db postgres://u:secret@host/db &&
	complains pg_dump && ! complains secret && : >empty.db && exits 78 db backup copy.db --db sqlite:empty.db &&
	[ -z "$(ls copy.db* missing.db* 2>/dev/null)" ]
result backup_of_what_is_no_store
(ulimit -f 64 && exits 70 db backup copy.db --db sqlite:served.db && complains "File too large") && [ -z "$(ls copy.db* 2>/dev/null)" ]
result backup_without_room_leaves_nothing

exits 0 db raise-fences --db sqlite:served.db && says "every fence is above " &&
	floor=$(sed 's/.* above //' "$dir/out") && [ "$floor" -gt 1700000000000000 ] && [ "$floor" -lt 9007199254740992 ]
result raise_fences
exits 0 db raise-fences --db sqlite:served.db --json && says '{"store":"sqlite:served.db","fencesAbove":'
result raise_fences_as_json
(flock -n 8 && exits 75 db raise-fences --db sqlite:served.db && complains "another server") 8>served.db.lock
result raise_fences_beside_a_server
echo "UPDATE hx_fences SET floor = 9000000000000000" | "$dir/sql" served.db
exits 78 db raise-fences --db sqlite:served.db && complains "the clock is behind"
result raise_fences_with_a_clock_that_is_behind
exits 4 db raise-fences --db sqlite:missing.db && complains "put the copy back first" && ! complains migrate && exits 78 db raise-fences --db sqlite:before.db && complains schema &&
	[ ! -e missing.db ]
result raise_fences_of_what_is_no_store

# The recipe of docs/operations.md, but for the users and the service.
mkdir -p data backup && exits 0 db migrate --db sqlite:data/hapax.db && : >data/hapax.db-wal
sed -n '/^## Backup and restore/,/^## /p' "$operations" | sed -n 's/^[$#] //p' | sed 's,runuser -u hapax -- ,,; s,/var/lib/hapax,data,g
	s,/backup,backup,g; s,^hapax ,"$hapax" ,' | grep -v '^systemctl\|^chown' >recipe
[ "$(wc -l <recipe)" -eq 6 ] && hapax=$hapax bash -eu recipe >"$dir/out" 2>"$dir/err" && says "of one moment, checked" &&
	says "from now on every fence is above" && says "whole: " && exits 0 db status --db sqlite:data/hapax.db
result the_recipe_of_the_docs

# --- PostgreSQL, where there is one

if [ -n "${HAPAX_TEST_PG:-}" ]; then
	schema=cli_$$
	url="$HAPAX_TEST_PG?options=-csearch_path%3D$schema"
	place=postgres://${HAPAX_TEST_PG#*@}
	psql -qX "$HAPAX_TEST_PG" -c "CREATE SCHEMA $schema" >"$dir/out" 2>"$dir/err" &&
		exits 78 db status --db "$url" && says "schema   0" && exits 0 db migrate --db "$url" &&
		says "$place: brought from schema 0" && exits 0 db status --db "$url" && says "store    $place" &&
		exits 0 db migrate --db "$url" && says "$place: schema" && says "nothing to do" &&
		PGPASSWORD=secret exits 0 db status --json --db "$url&password=secret" && says "{\"store\":\"$place\"," && ! says secret &&
		psql -qX "$HAPAX_TEST_PG" -c "DROP SCHEMA $schema CASCADE" 2>/dev/null
	result postgres
	psql -qX "$HAPAX_TEST_PG" -c "CREATE SCHEMA $schema" && "$hapax" db migrate --print --db "$url" >"$dir/pg.sql" &&
		PGOPTIONS="-csearch_path=$schema" psql -qX -v ON_ERROR_STOP=1 "$HAPAX_TEST_PG" -f "$dir/pg.sql" \
			>"$dir/out" 2>"$dir/err" && exits 0 db status --db "$url"
	result what_was_printed_can_be_run_by_psql
	psql -qX "$HAPAX_TEST_PG" -c "DROP SCHEMA $schema CASCADE" 2>/dev/null
fi

# --- the manual

bad=
for flag in $(for command in status migrate backup raise-fences; do "$hapax" db $command --help; done | grep -o -- '--[a-z]*' | sort -u); do
	grep -qF -- "${flag//-/\\-}" "$man" || bad="$bad $flag"
done
for code in $(for command in status migrate backup raise-fences; do "$hapax" db $command --help; done | sed -n 's/^  \([0-9]\+\) .*/\1/p' | sort -u); do
	grep -q "^\.B $code\$" "$man" || bad="$bad $code"
done
[ -z "$bad" ] || echo "not in hapax.1:$bad"
[ -z "$bad" ]
result the_manual_has_every_option_and_exit_code
exit 0
