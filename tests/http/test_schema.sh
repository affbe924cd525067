#!/usr/bin/env bash
# Schemas. postgres://…?schema=NAME keeps our tables in one of our own, made if it is not there, beside another store in the
# schema that comes after it; every verb takes it. meta.table may name the schema of the user's table, on SQLite only "main".
set -u
. tests/support/cli.sh

cat >flows/bill.json <<'END'
{ "workflow": "bill", "kind": "entity", "meta": { "table": "app_SCHEMA.bills" }, "status_types": ["open", "paid"],
  "initial_status": "open", "actions": { "Book": { "kind": "sql", "statements": [
    { "name": "book", "sql": "INSERT INTO plain_book (id) VALUES (:id)" } ] } },
  "steps": [ { "step_id": 1, "step_key": "pay", "status": "open", "successful_state": "paid", "action": "Book" } ] }
END
cp flows/bill.json bill.template
with_table() { sed "s/app_SCHEMA.bills/$1/" bill.template >flows/bill.json; }
table="(id INTEGER PRIMARY KEY, status TEXT, version INTEGER, updated_at TEXT)"

# --- SQLite

python3 - "$table" <<'END'
import sqlite3, sys
db = sqlite3.connect("hapax.db")
db.execute("CREATE TABLE bills " + sys.argv[1]); db.execute("INSERT INTO bills VALUES (7, 'open', 1, '')")
db.execute("CREATE TABLE plain_book (id TEXT)"); db.commit()
END
with_table app.bills
exits 78 serve --db sqlite:hapax.db --listen 127.0.0.1:0 --workflows flows &&
	complains 'an SQLite store has no schema but main; write "bills"'
result a_schema_on_sqlite_is_refused_in_words
with_table Main.hx_job
exits 78 serve --db sqlite:hapax.db --listen 127.0.0.1:0 --workflows flows && complains "is the engine's own"
result and_so_is_a_table_of_ours
with_table main.bills
"$hapax" serve --db sqlite:hapax.db --listen 127.0.0.1:0 --workflows flows >ready 2>log &
server=$!
await test -s ready && HAPAX_SERVER=$(sed 's/^ready //' ready) && export HAPAX_SERVER && exits 0 entity fire bill 7 pay &&
	exits 0 entity show bill 7 && says paid && kill "$server" && wait "$server"
result main_is_the_file_itself
server=
[ -n "${HAPAX_TEST_PG:-}" ] || exit 0

# --- PostgreSQL: the store in own_$$, another one in front_$$, the user's tables in front_$$ and app_$$

sql() { psql -qXAt -v ON_ERROR_STOP=1 "$HAPAX_TEST_PG" -c "$1" 2>>"$dir/err"; }
own=Own_$$ front=front_$$ app=app_$$
drop() { sql "DROP SCHEMA IF EXISTS \"$own\", $front, $app, gate_own_$$ CASCADE" 2>/dev/null; finish; }
trap drop EXIT
base="$HAPAX_TEST_PG?options=-csearch_path%3D$front"
url="$base&schema=$own"
sql "CREATE SCHEMA $front; CREATE SCHEMA $app; CREATE TABLE $front.plain_book (id TEXT); CREATE TABLE $app.bills $table;
	INSERT INTO $app.bills VALUES (7, 'open', 1, ''), (8, 'open', 1, '')"
exits 0 db migrate --db "$base" && exits 78 db status --db "$url" && says "schema   0" && says "schema=$own" &&
	[ "$(sql "SELECT to_regnamespace('\"$own\"') IS NULL")" = t ]
result another_store_further_along_is_not_taken_for_it
exits 78 serve --no-migrate --db "$url" --listen 127.0.0.1:0 --workflows flows && complains "run \`hapax db migrate\`"
result nothing_is_made_without_migration
"$hapax" db migrate --print --db "$url" >own.sql && exits 0 db migrate --db "$url" && says "brought from schema 0" &&
	exits 0 db status --db "$url" && exits 0 db migrate --db "$url" && says "nothing to do"
result the_schema_is_made
echo '{"entry_lock_store": "redis://127.0.0.1:1/0?nonsense=1"}' >late.json
exits 78 serve --config late.json --db "$url" --listen 127.0.0.1:0 && complains "redis: "
result a_start_that_fails_after_the_node_has_joined_says_why
tables="SELECT count(*) FROM pg_class WHERE relkind = 'r' AND relname LIKE 'hx\\_%' AND relnamespace ="
functions="SELECT count(*) FROM pg_proc WHERE proname LIKE 'hx\\_%' AND pronamespace ="
[ "$(sql "$tables '\"$own\"'::regnamespace")" -gt 15 ] && [ "$(sql "$functions '\"$own\"'::regnamespace")" -ge 2 ] &&
	[ "$(sql "$tables '$front'::regnamespace")" = "$(sql "$tables '\"$own\"'::regnamespace")" ]
result with_all_tables_and_functions
with_table "$app.bills"
: >ready
"$hapax" serve --db "$url" --listen 127.0.0.1:0 --workflows flows >ready 2>log &
server=$!
await test -s ready && HAPAX_SERVER=$(sed 's/^ready //' ready) && exits 0 entity fire bill 7 pay && exits 0 entity show bill 7 && says paid
result a_table_in_a_schema
[ "$(sql "SELECT status || version FROM $app.bills WHERE id = 7")" = paid2 ] && [ "$(sql "SELECT id FROM $front.plain_book")" = 7 ] &&
	[ "$(sql "SELECT count(*) FROM \"$own\".hx_history")" -gt 0 ] && [ "$(sql "SELECT count(*) FROM $front.hx_history")" = 0 ]
result names_without_a_schema_are_found_where_they_were
grep -q "schema=$own" log && exits 0 entity list bill && says 8
result lists_and_log
exits 0 audit --db "$url" && says whole
result audit
exits 0 key create --name first --workspace default --scope admin --db "$url" && exits 0 key list --db "$url" && says first &&
	exits 0 key list --db "$base" && ! says first
result keys_are_in_it
kill "$server" && wait "$server"
server=
sql "DROP SCHEMA \"$own\" CASCADE" && psql -qX -v ON_ERROR_STOP=1 "$HAPAX_TEST_PG" -f own.sql >out 2>err && exits 0 db status --db "$url"
result what_was_printed_can_be_run_by_psql
exits 0 db raise-fences --db "$url" && exits 78 db backup copy --db "$url" && complains "--schema=NAME"
result fences_and_backup
: >ready
"$hapax" gate --store "$base&schema=gate_own_$$" --listen 127.0.0.1:0 --upstream http://127.0.0.1:9 >ready 2>log &
server=$!
await test -s ready && [ "$(sql "$tables 'gate_own_$$'::regnamespace")" -gt 0 ]
result the_gate_has_one_too
for bad in "" pg_catalog 'a%20b' 'a"b' "a'b" 1a information_schema "$(printf 'a%.0s' {1..64})" "a&schema=b"; do
	exits 78 db status --db "$base&schema=$bad" && complains "?schema=NAME" || break
done
result other_names_are_refused
