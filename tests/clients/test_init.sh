#!/usr/bin/env bash
# hapax init --js and --python: what they write works at once. The README of each is walked word by word, with the engine, a worker and the
# test that is in it.
set -u
. tests/support/cli.sh
files() { (cd "$1" && find . -mindepth 1 | sort | tr '\n' ' '); }
js='./README.md ./hapax ./hapax/client.js ./hapax/index.d.ts ./hapax/index.js ./hapax/run.js ./hapax/test.js ./order.mjs ./package.json ./test.mjs ./worker.mjs '
python='./README.md ./hapax ./hapax/__init__.py ./hapax/client.py ./hapax/run.py ./hapax/testing.py ./order.py ./test_order.py ./worker.py '

exits 0 init --js one && silent err && [ "$(files one)" = "$js" ] && says "node test.mjs" && exits 0 init two --python && [ "$(files two)" = "$python" ] &&
	says "python3 worker.py"
result they_are_written
for file in client.js index.d.ts index.js run.js test.js; do cmp "$root/clients/js/$file" "one/hapax/$file" || break; done &&
	for file in __init__.py client.py run.py testing.py; do cmp "$root/clients/python/hapax/$file" "two/hapax/$file" || break; done
result the_client_is_that_of_the_repository
exits 2 init --js --python both && complains "two projects" && [ ! -e both ] && exits 5 init --js one && complains "one/hapax is there already" &&
	exits 0 init --python three --json && jq -e '.files | length == 8' <out >/dev/null
result what_is_refused

. "$root/tests/support/walk.sh"
trap walk_end EXIT
export PYTHONDONTWRITEBYTECODE=1
mkdir bin && ln -s "$hapax" bin/hapax
export PATH=$PWD/bin:$PATH HAPAX=$hapax
top=$PWD
for project in one two; do
	cd "$top/$project" || exit 1
	read -r _ port < <(walk_ports 7411)
	export HAPAX_LISTEN=127.0.0.1:$port HAPAX_SERVER=http://127.0.0.1:$port
	cp README.md page.md
	walk 5
	cut -d ' ' -f 2- effects.log | sort >"$top/effects"
	printf '%s\n' 'charge 120' 'reserve lamp' | diff - "$top/effects"
	result "each_effect_once_in_$project"
done
exit 0
