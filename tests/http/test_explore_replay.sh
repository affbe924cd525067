#!/usr/bin/env bash
# No false alarm: what `hapax explore` finds in examples/explore is seen on a real server with a real service that does not dedupe,
# loses answers and acts late; and with the mended twin, treated the same, it is not.
set -u
. tests/support/cli.sh
command -v curl >/dev/null && command -v jq >/dev/null || { echo "[  SKIPPED ] curl and jq are needed" && exit 0; }
python3 "$root/tests/http/explore_service.py" 0 >service.ready 2>service.log &
service=$!
trap 'kill "$service" 2>/dev/null; finish' EXIT
await test -s service.ready || { echo "not ok the_service_is_there" && exit 0; }
url=http://127.0.0.1:$(sed 's/^ready //' service.ready)
tell() { curl -sS -o /dev/null -X PUT "$url/$1"; }
times() { curl -sS "$url/ledger" | jq --arg a "$1" '.[$a] // [] | length'; }
same_key() { curl -sS "$url/ledger" | jq -e --arg a "$1" '.[$a] | unique | length == 1' >/dev/null; }

# The examples, with the address of this service and times that a test can wait for.
for file in "$root"/examples/explore/*.json; do
	case $file in *world.json) continue ;; esac
	name=$(basename "$file" .json)
	sed "s,http://127.0.0.1:9100,$url,; s/\"workflow\": \"\([a-z]*\)\"/\"workflow\": \"\1-${name//[.]/-}\"/; s/\"on_unknown\": \"retry\"/&, \"retry\": { \"max_attempts\": 3, \"initial\": \"100ms\" }/" "$file" >"flows/$name.json"
done
echo '{ "modules": { "accounts": { "janitor": { "every": "1s", "stuck_after": "2s" } }, "payouts": { "janitor": { "every": "1s", "stuck_after": "2s" } } } }' >config.json
serve --config config.json
test -n "$HAPAX_SERVER"
result the_server_is_there

status_is() { # run, status
	[ "$("$hapax" run show "$1" --json 2>/dev/null | jq -r .status)" = "$2" ]
}
run_of() { "$hapax" run start "$1" --json | jq -r .run.id; }

tell mind/charge/lost
run=$(run_of checkout-double-charge)
await status_is "$run" COMPLETED && [ "$(times charge)" -eq 2 ] && same_key charge
result a_double_charge_after_a_timeout
tell mind/charge/lost
run=$(run_of checkout-double-charge-mended)
await status_is "$run" COMPLETED && [ "$(times charge)" -eq 4 ] && [ "$(curl -sS "$url/ledger" | jq '.charge | unique | length')" -eq 2 ]
result the_mended_one_sends_one_key_for_a_service_to_dedupe

before=$(times charge)
tell mind/charge/late
run=$(run_of booking-refund-before-void)
await status_is "$run" WAITING && "$hapax" run cancel "$run" >out 2>err && await status_is "$run" CANCELLED && tell land &&
	[ "$(times charge)" -eq $((before + 1)) ] && [ "$(times refund)" -eq 0 ]
result a_charge_after_the_run_was_cancelled

entity() { # workflow step
	"$hapax" entity create "$1" e1 >out 2>err && "$hapax" entity fire "$1" e1 "$2" >out 2>err
	[ $? -eq 8 ] # nobody knows
}
is_back() { [ "$("$hapax" entity show "$1" e1 --json | jq -r .status)" = "$2" ]; }
tell mind/mail/lost
entity signup-mail-in-the-action welcome && await is_back signup-mail-in-the-action new &&
	"$hapax" entity fire signup-mail-in-the-action e1 welcome >out 2>err && [ "$(times mail)" -eq 2 ] && same_key mail
result a_mail_in_the_action
tell mind/pay/lost
entity payout-claim-without-probe pay && await is_back payout-claim-without-probe approved &&
	"$hapax" entity fire payout-claim-without-probe e1 pay >out 2>err && [ "$(times pay)" -eq 2 ] && same_key pay
result a_claim_without_a_probe

# An item that is late: its batch is cancelled, its money given back, what it left deleted, and then it happens.
"$hapax" account create payer --balance 10 >out 2>err
echo '{ "input": {}, "cost": 3 }' >items
is_late() { [ "$(curl -sS "$url/late")" -ge "$1" ]; }
batch_is() { [ "$("$hapax" batch show "$1" --json 2>/dev/null | jq -r .status)" = "$2" ]; }
cancelled() { # workflow; its batch is cancelled while its item is late
	tell mind/draw/late/late/late/late/late
	batch=$("$hapax" batch start "$1" --account payer --items items --json 2>err | jq -r '.batch.id // .id')
	await is_late 1 && "$hapax" batch cancel "$batch" >out 2>err
	await batch_is "$batch" CANCELLED && [ "$("$hapax" account show payer --json | jq .balance)" -eq 10 ]
}
cancelled thumbnails-late-item && [ "$(times draw)" -eq 0 ] && deleted=$(times delete) && [ "$deleted" -ge 1 ] && tell land &&
	[ "$(times draw)" -ge 1 ] && [ "$(times delete)" -eq "$deleted" ]
result an_item_after_its_refund
cancelled thumbnails-late-item-mended && [ "$(times void)" -ge 1 ]
result the_mended_one_voids_its_key_before_that
tell land
tell mind/draw/done

tell mind/ship/wait
run=$(run_of parcel-cancel-race)
await eval '[ "$(times ship)" -eq 1 ]' && "$hapax" run cancel "$run" >out 2>err && tell go && await status_is "$run" CANCELLED &&
	[ "$(times ship)" -eq 1 ] && [ "$(times unpack)" -eq 1 ] && [ "$(times recall)" -eq 0 ]
result a_cancel_that_races_completion
tell mind/ship/lost
run=$(run_of parcel-cancel-race-mended)
await status_is "$run" COMPLETED && [ "$(times recall)" -eq 0 ]
result without_a_cancel_nothing_is_recalled
exit 0
