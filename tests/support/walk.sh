# walk.sh: for tests that walk through a page, to be sourced: every command of the page is run in order, in a tree of its
# own, and every answer compared with the one that is printed there. What counts as a command and as an answer is said in
# page.py. A command is run once, or with "again" until its answer comes, at most 60 s; a program in a terminal is left
# running, an engine or a gate is waited for.
#
# The variables `id` and `KEY` are kept from command to command; what is in $walk_env is read before each.
walk_env=/dev/null
walk_terminals=

await() { # seconds, command…
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.05
	done
}

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		[ ! -e out ] || cat out
		tail -n 5 -- *.log 2>/dev/null
	fi
}

# A free port for each name. Not one of those that connections of others are given meanwhile.
walk_ports() { # names
	python3 -c '
import random, socket, sys
def free(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0
ports = filter(free, random.sample(range(10000, 30000), 1000))
for name in sys.argv[1:]:
    print(name, next(ports))' "$@"
}

# Makes a tree with the program, the clients and the examples, on free ports, and goes there. The page is in page.md.
walk_begin() { # page
	local name port tool moves=
	build=${HAPAX_BUILD:-$PWD/build}
	root=$PWD
	if [ ! -x "$build/hapax" ]; then
		echo "[  SKIPPED ] the program is not built in this flavour"
		exit 0
	fi
	for tool in python3 curl node; do
		command -v $tool >/dev/null || { echo "not ok $tool is needed for the examples" && exit 1; }
	done
	dir=$(mktemp -d)
	trap walk_end EXIT
	trap 'exit 143' TERM INT
	mkdir "$dir/build"
	ln -s "$build/hapax" "$dir/build/hapax"
	cp -r examples clients "$dir/"
	cp "$1" "$dir/page.md"
	cd "$dir" || exit 1
	while read -r name port; do
		declare -g "port_$name=$port"
		moves="$moves; s/\(:\|\.py \)$name\b/\1$port/g"
	done < <(walk_ports 7411 7412 7413 9000 9001 3000)
	find . -type f -exec sed -i "$moves" {} +
	unset HAPAX_DB HAPAX_WORKSPACE HAPAX_REQUESTER HAPAX_TIMEOUT HAPAX_CONFIG HAPAX_WORKFLOWS HAPAX_NODE HAPAX_KEY COLUMNS
	unset GATE HAPAX_GATE_UPSTREAM HAPAX_GATE_STORE HAPAX_GATE_CONFIG
	export HAPAX_LISTEN=127.0.0.1:$port_7411 HAPAX_SERVER=http://127.0.0.1:$port_7411
	export HAPAX_GATE_LISTEN=127.0.0.1:$port_7412 HAPAX_GATE_ADMIN=127.0.0.1:$port_7413
	export PATH=$dir/build:$PATH
}

# shellcheck disable=SC2317  # called by the trap
walk_end() {
	local pid
	for pid in $walk_terminals; do kill -CONT "$pid" && kill "$pid" && wait "$pid"; done 2>/dev/null
	rm -rf "$dir"
}

# An example's or the demo's run.sh, until it has said that all is there. Its output is in run.log.
walk_start() { # script, words
	"$1" >run.log 2>&1 &
	runner=$!
	walk_terminals="$walk_terminals $runner"
	await 60 grep -qs "$2" run.log
	result it_starts
}

walk_runs_and_fits() { # NNN
	bash -c ". $walk_env; [ ! -e kept ] || . ./kept; . ./$1.sh; declare -p id KEY >kept 2>/dev/null" >out 2>&1
	python3 "$root/tests/support/page.py" fits "$1.text" out
}

walk_terminal() { # NNN
	bash -c ". $walk_env; exec $(cat "$1.terminal")" >"$1.log" 2>&1 &
	walk_terminals="$walk_terminals $!"
	! grep -qE 'hapax (serve|gate -)' "$1.terminal" || await 60 grep -qs '^ready ' "$1.log"
}

walk() { # how many commands there are at least
	local n=0 script first
	python3 "$root/tests/support/page.py" split page.md
	result the_page_is_understood
	ls [0-9]*.sh [0-9]*.terminal 2>/dev/null | sort >blocks
	while read -r script <&3; do
		n=${script%.*}
		first=$(grep -m 1 -v '^\. ' "$script")
		if [ "${script##*.}" = terminal ]; then walk_terminal "$n"
		elif [ -e "$n.again" ]; then await 60 walk_runs_and_fits "$n"
		else walk_runs_and_fits "$n"; fi
		result "walk_$n ${first:0:60}"
	done 3<blocks
	[ "$((10#$n))" -ge "$1" ]
	result the_walk_has_its_commands
}
