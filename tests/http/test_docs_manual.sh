#!/usr/bin/env bash
# The EXAMPLES of every manual page of a command, run line by line beside the demo. They show no answers, and a held claim or a parked
# job is not at hand for each of them: what counts is that hapax understands the command.
set -u
. tests/support/walk.sh

walk_begin README.md
walk_start examples/demo/run.sh 'is printed here'
{
	cp -rL build/demo/workflows workflows && cp examples/order/order.{test,world}.json workflows && cp examples/billing/config.json hapax.json && head -4 build/demo/frames.json >frames.jsonl &&
		cp examples/order/order.json . && echo '{"sku": "lamp", "total": 90}' >input.json && echo '{}' >world.json &&
		python3 examples/billing/tables.py create hapax.db && build/hapax db migrate --db sqlite:hapax.db && curl -sf "$HAPAX_SERVER/api/v1/accounts" -d '{"id": "studio", "balance": 9000}'
} >out 2>&1
result what_the_examples_name_is_there
export HAPAX_LISTEN=127.0.0.1:0
# Not hapax's, and not on every machine.
less() { cat; }
rsvg-convert() { cat >/dev/null; }

examples() { # page
	sed -n '/^\.SH EXAMPLES/,/^\.SH "*[^E]/p' "$1" | grep -v '^\.' | sed "s/\\\\-/-/g; s/\\\\(aq/'/g; s/\\\\(dq/\"/g; s/\\\\&//g; s/\\\\e/\\\\/g"
}
# What stands for what: the demo's store, a free port, the newest thing of its kind, a short wait for a run without an end.
newest() { build/hapax "$1" list --json 2>&1 | grep -om 1 "$1_[0-9a-z]*" | head -1; }
made_real() { # command
	local kind line=$1
	for kind in run batch job; do
		[[ ! $line =~ ${kind}_[0-9a-z]{13} ]] || line=${line//${BASH_REMATCH[0]}/$(newest $kind)}
	done
	sed -E "s#sqlite:/var/lib/hapax/hapax.db|postgres://[^ ]*#sqlite:build/demo/hapax.db#; s/:7412\b/:$port_7412/; s/:7413\b/:$port_7413/;
		s/@order.json/@input.json/; s/--wait 30s/--wait 1s/; s/--seconds 60/--seconds 1/" <<<"$line"
}
try() { # command
	local line
	line=$(made_real "$1")
	if [[ $line =~ ^hapax\ (serve|gate\ -) ]]; then
		bash -c "exec $line" >server.log 2>&1 &
		walk_terminals="$walk_terminals $!"
		await 60 grep -qs '^ready ' server.log
	else
		eval "$line" >out 2>&1 </dev/null
		case $? in 2 | 64 | 126 | 127) false ;; esac
	fi
}

for page in "$root"/man/*.1; do
	count=0
	unset HAPAX_KEY
	while IFS= read -r line <&3; do
		[[ $line =~ ^[A-Za-z] ]] || continue
		count=$((count + 1))
		try "$line"
		result "${page##*/}: ${line:0:70}"
	done 3< <(examples "$page")
	[ "$count" -gt 0 ] || ! grep -q '^\.SH EXAMPLES' "$page"
	result "${page##*/}: has its examples"
done
exit 0
