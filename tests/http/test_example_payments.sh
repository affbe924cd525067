#!/usr/bin/env bash
# examples/payments: its README, walked through (tests/support/walk.sh), and what the outside world saw meanwhile.
set -u
. tests/support/walk.sh

walk_begin examples/payments/README.md
walk_env=build/payments/env
walk_start examples/payments/run.sh 'The whole walk is in'
walk 11

# --- what the service was made to pay: nothing but what the page says

tail -n +2 build/payments/paid | grep -v 'the caller is gone' >out
diff - out >&2 <<'END'
/payments: paid 500, payment 1
/payments: paid 600, payment 2
/payments: paid 700, payment 3
/payments: paid 700, payment 4
/transfers: paid 800, payment 5
/transfers: paid 800, payment 6
END
result six_payments
[ "$(grep -c 'the gate died of signal 9; starting it again' run.log)" = 2 ]
result the_gate_is_started_again

# --- the banner's command is that of the walk; Ctrl-C ends everything

grep -qF "  $(grep -m 1 -o 'curl.*' 001.sh | sed 's/-si/-i/')" run.log
result the_banner
gate=$(cat build/payments/gate.pid)
kill "$runner" && wait "$runner"
result it_stops_well
! kill -0 "$gate" 2>/dev/null && ! bash -c '. build/payments/env; curl -s $GATE/'
result nothing_is_left
exit 0
