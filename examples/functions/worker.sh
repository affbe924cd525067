#!/usr/bin/env bash
# A worker of functions in shell, with curl and jq: no library, only the protocol (docs/functions.md). It takes one turn at a time of the
# function `parcel`: a keyed step, a claimed one, an event, a step. What is in the journal is not done again.
#
#   worker.sh [FILE]    the effects go to FILE, one line each; HAPAX_SERVER as everywhere
set -u
server=${HAPAX_SERVER:-http://127.0.0.1:7411}/api/v1/functions
file=${1:-parcel.log}
me=shell-$$
body=
stop=

# The same bytes again until there is an answer. The status is in $status, what was said in $said.
post() { # path
	while :; do
		said=$(curl -s -m 30 -w '\n%{http_code}' -H 'Content-Type: application/json' --data-binary "$body" "$server/$1") && {
			status=${said##*$'\n'} said=${said%$'\n'*}
			[ "$status" -ge 500 ] || return
		}
		[ -z "$stop" ] || exit 1
		sleep 0.2
	done
}

# One call: entries and, maybe, an end. Fails if the run is not ours any more.
journal() { # entries [end]
	body=$(jq -cn --arg w "$me" --argjson f "$fence" --argjson s "$seq" --argjson e "$1" --argjson last "${2:-null}" \
		'{worker: $w, fence: $f, seq: $s, entries: $e, leaseMs: 30000} + if $last then {end: $last} else {} end')
	post "runs/$run/journal"
	[ "$status" = 200 ] || return 1
	seq=$(jq .seq <<<"$said")
	known=$(jq -c --argjson new "$(jq -c .completed <<<"$said")" '. + $new' <<<"$known")
}

# What the journal has of an entry: its state and its output. The last word counts.
state() { jq -r --arg n "$1" '[.[] | select(.name == $n)] | last | .state // "new"' <<<"$known"; }
output() { jq -c --arg n "$1" '[.[] | select(.name == $n and .output != null)] | last | .output // null' <<<"$known"; }

# A step: what is done is done. A claimed one is begun before it is executed; one that is in doubt waits for a person, and has no turn.
step() { # name effect command…
	local name=$1 effect=$2 out
	shift 2
	[ "$(state "$name")" != done ] || return 0
	if [ "$effect" = claimed ]; then
		journal "[{\"kind\": \"step\", \"name\": \"$name\", \"n\": 0, \"effect\": \"claimed\", \"state\": \"begun\"}]" || return 1
	fi
	out=$("$@" "$run/$name/0")
	journal "[{\"kind\": \"step\", \"name\": \"$name\", \"n\": 0, \"effect\": \"$effect\", \"state\": \"done\", \"output\": $out}]" || return 1
	known=$(jq -c --arg n "$name" --argjson o "$out" '. + [{name: $n, state: "done", output: $o}]' <<<"$known")
}

weigh() { grep -qs "^weigh $1\$" "$file" || echo "weigh $1" >>"$file"; echo 7; }
stamp() { echo "stamp $1" >>"$file"; echo '"stamped"'; }
ship() { grep -qs "^ship $1\$" "$file" || echo "ship $1" >>"$file"; echo '"shipped"'; }

parcel() { # the function itself
	step weigh keyed weigh || return
	step stamp claimed stamp || return
	case $(state pickup) in
	new) journal '[{"kind": "event", "name": "pickup", "n": 0, "event": "pickup"}]' \
		'{"state": "suspended", "awaits": [{"kind": "event", "name": "pickup", "n": 0}]}'; return ;;
	open) journal '[]' '{"state": "suspended", "awaits": [{"kind": "event", "name": "pickup", "n": 0}]}'; return ;;
	esac
	step ship keyed ship || return
	journal '[]' "{\"state\": \"completed\", \"output\": {\"weight\": $(output weigh), \"by\": $(output pickup)}}"
}

trap 'stop=1' TERM
while [ -z "$stop" ]; do
	body="{\"worker\": \"$me\", \"functions\": [{\"name\": \"parcel\", \"version\": \"1\"}], \"max\": 1, \"waitMs\": 1000, \"leaseMs\": 30000}"
	post claim
	[ "$status" = 200 ] || { echo "$said" >&2; exit 1; }
	turn=$(jq -c '.turns[0] // empty' <<<"$said")
	[ -n "$turn" ] || continue
	run=$(jq -r .run <<<"$turn") fence=$(jq .fence <<<"$turn") seq=$(jq .seq <<<"$turn") known=$(jq -c .journal <<<"$turn")
	if [ "$(jq .cancelled <<<"$turn")" = true ]; then
		journal '[]' '{"state": "undone"}' # there is nothing to undo
	else
		parcel
	fi
done
