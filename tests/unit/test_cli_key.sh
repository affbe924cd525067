#!/usr/bin/env bash
# hapax key …, by their output and exit codes; the client's --key-file and HAPAX_KEY; help and manual agree. (What keys may do is
# in tests/http/test_keys.c.)
set -u
. tests/support/cli.sh

# --- a store that is not there, or not fit

exits 4 key create --scope read && complains "hapax db migrate makes one" && exits 4 key list && exits 4 key revoke key_0000000000001 &&
	[ -z "$(ls hapax.db* 2>/dev/null)" ]
result no_store_is_made
exits 78 key list --db sqlite::memory: && complains "has no keys" && exits 78 key create --scope read --db mysql://root:secret@host/db && ! complains secret
result urls_that_do_not_fit
"$hapax" db migrate >/dev/null

# --- create

exits 0 key create --scope admin --requester adm --workspace 'my shop' --expires 90d --name 'for ann' && lines 1 &&
	says_like '^hx_[0-9a-z]{13}_[0-9a-z]{52}$' && complains "admin in the workspace my shop as adm, until 20" && complains "shown this once"
result create
complains "the first key of this store" && complains "outbound.allow"
result the_first_key_says_what_it_changes
key=$(cat out)
id=key_$(cut -d_ -f2 out)
complains "$id" && ! complains "$key"
result the_key_stands_on_standard_output_alone
exits 0 key create --scope read --json && says_like '^\{"id":"key_[0-9a-z]{13}","key":"hx_[0-9a-z]{13}_[0-9a-z]{52}","name":"","workspace":"default","requester":"default","scope":"read","status":"live","createdAt":"20[^"]*Z","expiresAt":null,"revokedAt":null\}$' &&
	silent err
result create_as_json
reader=$(sed 's/.*"key":"\([^"]*\)".*/\1/' out)
exits 2 key create && complains "--scope is missing" && ! complains needed && exits 0 key create --help && says "admin (all), or worker" && says "; needed" && exits 2 key create --scope write && complains '--scope cannot be "write"; there are read, execute, admin, worker' && exits 2 key create --scope read --expires 0s &&
	exits 2 key create --scope read --expires soon && complains "--expires" && exits 2 key create --scope read --workspace "$(printf 'a\nb')" &&
	complains "--workspace" && [ "$(wc -l <err)" -eq 1 ] && exits 2 key create --scope read --requester "$(printf '%256s' x)" && exits 2 key create --scope read more
result create_that_is_not_valid
exits 0 key create --scope read --workspace "$(printf '%255s' x)"
result the_longest_name
"$hapax" key create --scope read >/dev/full 2>err
[ $? -eq 70 ]
result a_key_that_cannot_be_shown_is_an_error

# --- list

exits 0 key list && lines 5 && says_like "^$id +live +admin +my shop +adm +20.*Z +20.*Z +for ann *$" && ! says hx_ && silent err
result list
exits 0 key list --json && says '{"items":[{"id":"'"$id"'","name":"for ann","workspace":"my shop","requester":"adm","scope":"admin","status":"live"' && ! says '"key"' && lines 1
result list_as_json
exits 0 key create --scope read --name "$(printf 'x\302\233y')" && exits 0 key list && ! grep -q "$(printf '\302\233')" out
result foreign_text_in_the_list_is_made_printable
exits 0 key create --scope read --expires 1ms --name short && await eval '"$hapax" key list | grep -q "expired.*short"'
result an_expired_key_is_listed_as_such

# --- beside a server: its lock does not keep keys out

serve_file() { "$hapax" serve --db sqlite:hapax.db --listen 127.0.0.1:0 >ready 2>log & }
serve_file
server=$!
await test -s ready
HAPAX_SERVER=$(sed 's/^ready //' ready)
export HAPAX_SERVER
exits 77 job list && complains "401 UNAUTHENTICATED" && exits 77 job list --json && complains '"code":"UNAUTHENTICATED"'
result without_a_key
HAPAX_KEY=$key exits 0 job push q && says_like '^job_' && HAPAX_KEY=$key exits 0 job list --json && says '"queue":"q"' && HAPAX_KEY=$reader exits 0 job list && lines 1
result the_key_in_the_environment
printf '%s\n' "$key" >file
HAPAX_KEY=$reader exits 0 job list --key-file file && lines 2 && "$hapax" job list --key-file - <file >out 2>err && lines 2
result a_file_comes_before_the_environment
HAPAX_KEY=$reader exits 77 job push q && complains "scope is read, and this call needs execute (403 FORBIDDEN)"
result a_key_that_may_not
HAPAX_KEY=$key exits 77 job list --workspace other && complains "Hapax-Workspace is another" && HAPAX_KEY=$key HAPAX_REQUESTER=root exits 77 job list &&
	HAPAX_KEY=$key exits 0 job list --workspace 'my shop' --requester adm
result another_workspace_than_the_keys
HAPAX_KEY="${key%?}" exits 2 job list && complains "HAPAX_KEY is not an API key" && ! complains "${key%?}" && HAPAX_KEY="$(printf '%s\r\nX: y' "$key")" exits 2 job list &&
	exits 2 job list --key-file nothing && complains "nothing cannot be read" && echo secret >other && exits 2 job list --key-file other && ! complains secret
result what_is_no_key_is_not_sent_and_not_shown

# --- revoke

exits 2 key revoke "$key" && complains "give its id" && ! complains "${key#hx_*_}" && exits 2 key revoke && exits 4 key revoke nobody && complains "nobody" &&
	exits 4 key revoke key_0000000000001
result revoke_that_is_not_valid
exits 0 key revoke "$id" && is out "$id is revoked: every server refuses it within 2 s" && HAPAX_KEY=$key await exits 77 job list >tries && exits 0 key list && says_like "^$id +revoked"
result revoke
exits 0 key revoke "$id" && is out "$id was revoked before" && exits 0 key revoke "$id" --json && is out "{\"id\":\"$id\",\"status\":\"revoked\",\"already\":true}"
result revoke_once_more
! grep -q 'hx_' log
result no_key_is_in_the_log

# --- PostgreSQL, where there is one

if [ -n "${HAPAX_TEST_PG:-}" ]; then
	schema=cli_key_$$
	url="$HAPAX_TEST_PG?options=-csearch_path%3D$schema"
	psql -qX "$HAPAX_TEST_PG" -c "CREATE SCHEMA $schema" >out 2>err && exits 78 key list --db "$url" && "$hapax" db migrate --db "$url" >out &&
		exits 0 key create --scope read --db "$url" --json && id=$(grep -o 'key_[0-9a-z]*' out) && exits 0 key list --db "$url" && says "$id" &&
		exits 0 key revoke "$id" --db "$url" && exits 0 key list --db "$url" && says_like "^$id +revoked"
	result postgres
	psql -qX "$HAPAX_TEST_PG" -c "DROP SCHEMA $schema CASCADE" 2>/dev/null
fi

help_is_in_manual key hapax-key.1 && exits 2 key crate && complains 'did you mean "key create"?'
result help_and_manual
exit 0
