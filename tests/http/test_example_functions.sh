#!/usr/bin/env bash
# examples/functions: its README, walked through (tests/support/walk.sh) with the clients of clients/ and a worker in shell, and what the
# outside world saw afterwards.
set -u
. tests/support/walk.sh

walk_begin examples/functions/README.md
ln -s "$root/clients" clients
export PYTHONDONTWRITEBYTECODE=1
walk 18

# --- what the outside world saw

cat build/functions/ledger/* | sort >out
printf '%s\n' 'release sofa' 'reserve cup' 'reserve lamp' 'reserve sofa' | diff - out
result four_effects
cut -d ' ' -f 1 build/functions/parcel.log | sort | uniq -c | awk '{ print $1, $2 }' >out
printf '%s\n' '1 ship' '1 stamp' '1 weigh' | diff - out
result a_parcel_is_weighed_stamped_and_shipped_once
"$build/hapax" audit --db "sqlite:$PWD/build/functions/hapax.db" >out 2>&1
result the_audit_finds_nothing
