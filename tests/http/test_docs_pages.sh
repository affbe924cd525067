#!/usr/bin/env bash
# Every page that shows commands and has no test of its own, walked through (tests/support/walk.sh). A page that starts an
# engine or a gate is walked as it stands; the others are about the demo's workflows, and walked beside it.
set -u
. tests/support/walk.sh

# What a page takes for granted.
scene() { # page
	case $1 in
	docs/gate.md) # a service at port 3000
		python3 examples/payments/payments.py "$port_3000" >upstream.log &
		walk_terminals="$walk_terminals $!"
		await 60 grep -qs ^ready upstream.log
		;;
	docs/api.md) # the demo, and a store to make a key in
		walk_start examples/demo/run.sh 'is printed here'
		build/hapax db migrate --db sqlite:hapax.db >out 2>&1
		;;
	docs/batches.md) # its definition, served
		mkdir flows
		awk '/^```json definition/ { on = 1; next } /^```/ { on = 0 } on' page.md >flows/film.json
		build/hapax check --strict flows >out 2>&1
		result "docs/batches.md: the definition is clean"
		python3 examples/render/store.py "$port_9000" >store.log &
		walk_terminals="$walk_terminals $!"
		build/hapax serve --db sqlite:hapax.db --workflows flows >serve.log 2>&1 &
		walk_terminals="$walk_terminals $!"
		await 60 grep -qs '^ready ' serve.log && await 60 grep -qs '^ready' store.log
		;;
	docs/embedding.md) # the library, installed, and the example
		if grep -qE '__(asan|tsan)_init' "$build/libhapax.so"; then
			echo "[  SKIPPED ] a program cannot be built with the library of this flavour"
			exit 0
		fi
		export PKG_CONFIG_PATH=$dir/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$dir LD_LIBRARY_PATH=$dir/usr/lib
		cp examples/embed/embed.c . && (cd "$root" && BUILD=$build DESTDIR=$dir PREFIX=/usr packaging/install.sh install) >out 2>&1
		;;
	*) # the demo, or nothing
		grep -qE '^(\$ )?(build/)?hapax (serve|gate -)' page.md || walk_start examples/demo/run.sh 'is printed here'
		;;
	esac
	result "$1: its world is there"
}

# All at once: they mostly wait.
outputs=$(mktemp -d)
trap 'rm -rf "$outputs"' EXIT
trap 'kill $(jobs -p); wait; exit 143' TERM INT
walkers=$(grep -l '^walk [0-9]' tests/http/*.sh)
for page in README.md docs/*.md examples/*/README.md; do
	# shellcheck disable=SC2086
	! grep -qF "walk_begin $page" $walkers || continue
	python3 tests/support/page.py list "$page" | grep -qv '  # not run: ' || continue
	(
		walk_begin "$page"
		scene "$page"
		walk 1
	) >"$outputs/${page//\//-}" 2>&1 &
done
wait
[ -e "$outputs/README.md" ] && [ "$(ls "$outputs" | wc -l)" -ge 9 ]
result all_pages_are_walked
for output in "$outputs"/*; do
	echo "${output##*/}"
	cat "$output"
done
exit 0
