#!/usr/bin/env bash
# hapax account …, by their output and exit codes, against a real server. Help and manual agree. (What batches do to an account is in
# test_cli_batch.sh; that credits made at once or through crashes count once, in tests/http/test_accounts.c.)
set -u
. tests/support/cli.sh

serve
result the_server_is_there
balance() { "$hapax" account show "$1" --json | grep -q "\"balance\":$2,"; } # account, what it has
time='[0-9-]{10}T[0-9:.]{12}Z'

exits 0 account create alice && is out "alice: balance 0" && silent err && exits 0 account create bob --balance 1000000000000000000 && is out "bob: balance 1000000000000000000"
result create
exits 5 account create alice --balance 7 && silent out && complains "exists already" && complains "(409 ALREADY_EXISTS)" && balance alice 0
result an_id_is_taken_once
bad=
for text in 1000000000000000001 99999999999999999999 1.0 1e3 +1 0x1 x "1 " " 1"; do
	exits 2 account create carol "--balance=$text" && silent out && complains "the balance is a whole number of the smallest unit, from 0 to 1000000000000000000, not" || bad="$bad $text"
done
for text in 0 00 1000000000000000001 1.0 1e3 x; do
	exits 2 account credit alice "$text" --key k && silent out && complains "the amount is a whole number of the smallest unit, from 1 to 1000000000000000000, not $text" || bad="$bad $text"
done
[ -z "$bad" ] || echo "taken, or not told:$bad"
[ -z "$bad" ] && exits 4 account show carol && balance alice 0
result amounts_that_are_none
exits 2 account credit alice -5 --key k && exits 2 account credit alice && exits 2 account credit alice 5 6 --key k && exits 2 account credit "" 5 --key k && exits 2 account create && exits 2 account list x
result operands

exits 0 account credit alice 20 --key pay-1 && is out "alice: balance 20" && exits 0 account credit alice 5 --key pay-2 && is out "alice: balance 25" &&
	exits 0 account credit alice 20 --key pay-1 && is out "alice: balance 25, the credit was there already: nothing was done" && silent err && balance alice 25
result a_credit_counts_once
exits 0 account credit alice 20 --key pay-1 --json && says_like '^\{"id":"alice","balance":25,"createdAt":"'"$time"'","duplicate":true\}$' &&
	exits 0 account credit alice 1 --key pay-3 --json && says '"balance":26,' && says '"duplicate":false}'
result json_tells_which_it_was
exits 5 account credit alice 21 --key pay-1 && silent out && complains "this key has credited another amount before: 20, not 21 (409 ALREADY_EXISTS)" && balance alice 26
result another_amount_under_the_key
exits 2 account credit alice 5 && complains "account credit wants --key KEY" && ! complains needed && exits 0 account credit --help && says "has no effect; needed" && exits 2 account credit alice 5 --key /mine && complains "must not begin with" &&
	exits 2 account credit alice 5 --key "" && exits 4 account credit nobody 5 --key k && complains "there is no such account" && balance alice 26
result a_credit_wants_a_key_and_an_account
exits 2 account credit bob 1000000000000000000 --keey k && complains "did you mean --key?" && exits 2 account crdit alice 1 --key k && complains 'did you mean "account credit"?'
result the_nearest_is_named
exits 69 account credit alice 5 --key k9 --server http://127.0.0.1:1 && silent out && balance alice 26
result without_a_server

exits 0 account show alice && [ "$(cut -c -9 out | tr -d ' ' | paste -sd,)" = account,balance,created ] && says_like '^account  alice$' && says_like '^balance  26$' && says_like "^created  $time\$" &&
	exits 4 account show nobody && complains "there is no such account (404 NOT_FOUND)" && exits 4 account show alice --workspace other
result show
exits 0 account ledger alice && lines 5 && [ "$(sed -n 1p out | tr -s ' ')" = "SEQ TIME REASON AMOUNT BALANCE KEY" ] && says_like "^1 +$time +opening +0 +0 +/opening\$" &&
	says_like "^3 +$time +credit +5 +25 +pay-2\$" && exits 4 account ledger nobody && exits 0 account ledger alice --json && says '"reason":"opening"'
result ledger
exits 0 account ledger alice --limit 3 && lines 5 && says "there are more: --cursor '3'" && exits 0 account ledger alice --limit 3 --cursor 3 && lines 2 && says_like '^4 .* pay-3$'
result ledger_in_pages

exits 0 account list && [ "$(tr -s ' ' <out | cut -d ' ' -f 1,2 | paste -sd,)" = "ID BALANCE,alice 26,bob 1000000000000000000" ] && says_like "^alice +26 +$time\$" &&
	exits 0 account list --json && says_like '^\{"items":\[\{"id":"alice",.*\],"cursor":null\}$'
result list
exits 0 account create "a b/ä'" --workspace own && exits 2 account create "$(printf 'c\033[31m')" --workspace own && exits 0 account create z --workspace own &&
	exits 0 account list --workspace own --limit 1 && lines 3 && says_like "^a b/ä' +0 " && says "there are more: --cursor 'a b/ä'" && exits 0 account list --workspace own --limit 1 --cursor "a b/ä'" && lines 2 && says_like '^z +0 ' && exits 0 account show "a b/ä'" --workspace own && says "a b/ä'"
result names_and_pages
exits 0 account list --workspace nobody && lines 1
result an_empty_list
# A key may be anything, and what it shows does nothing to a terminal.
exits 0 account credit alice 1 --key "$(printf 'k\033[31m\n')" && exits 0 account ledger alice && says_like 'k.*\[31m' && ! grep -q "$(printf '\033')" out
result keys_are_shown_and_not_obeyed

help_is_in_manual account hapax-account.1 && "$hapax" account credit --help | grep -q 'needed' && "$hapax" account create --help | grep -q 'default: 0$'
result help_and_manual
exit 0
