#!/usr/bin/env bash
# tests/run itself: what it counts, what it shows, and that it leaves nothing behind.
set -u

runner=$PWD/tests/run
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export TMPDIR=$dir/tmp
unset V HAPAX_BUILD HAPAX_TEST_FAILURES HAPAX_TEST_QUEUE HAPAX_TEST_NICE HAPAX_TEST_AGAIN
mkdir "$TMPDIR"

program() { # name, body from standard input
	{ printf '#!/bin/bash\n' && cat; } >"$dir/$1"
	chmod +x "$dir/$1"
}

# expect NAME CODE LAST-LINE PROGRAM… : the exit code and the very last line.
expect() {
	local name=$1 code=$2 last=$3 got
	shift 3
	"$runner" "${@/#/$dir/}" >"$dir/output" 2>&1
	got=$?
	if [ "$got" -eq "$code" ] && [ "$(tail -n 1 "$dir/output")" = "$last" ] && [ -z "$(ls -A "$TMPDIR")" ]; then
		echo "ok $name"
	else
		printf 'not ok %s: exit %s\n' "$name" "$got"
		sed 's/^/| /' "$dir/output"
	fi
}

program good <<'END'
echo "[==========] Running 2 test(s)."
echo "[ RUN      ] a"
echo "[       OK ] a"
echo "[ RUN      ] b"
echo "[       OK ] b"
echo "[==========] 2 test(s) run."
echo "[  PASSED  ] 2 test(s)."
END
program bad <<'END'
echo "[==========] suite: Running 2 test(s)."
echo "[       OK ] a"
echo "[  FAILED  ] b"
echo "[==========] suite: 2 test(s) run."
echo "[  PASSED  ] 1 test(s)."
echo "[  FAILED  ] suite: 1 test(s), listed below:"
echo "[  FAILED  ] b"
exit 1
END
program script <<'END'
echo "ok one"
echo "not ok two"
echo "ok three"
END
program dies <<'END'
echo "[       OK ] a"
kill -SEGV $$
END
program silent <<'END'
exit 0
END
program slow <<'END'
echo "ok before"
exec sleep 100
END
program measures <<'END'
echo "# mutants: 9 killed of 9"
echo "noise"
echo "ok mutants"
echo "leftover" >"$TMPDIR/leftover"
END
program leaves_a_process <<'END'
sleep 100 &
echo "ok a"
END

expect two_passed 0 "2 passed, 0 failed" good
expect a_failed_test_counts_once 1 "1 passed, 1 failed" bad
expect scripts_count_too 1 "2 passed, 1 failed" script
expect a_death_is_a_failure 1 "1 passed, 1 failed" dies
expect silence_is_a_failure 1 "0 passed, 1 failed" silent
expect a_missing_program_is_a_failure 1 "0 passed, 1 failed" missing
expect nothing_ran_is_a_failure 1 "0 passed, 0 failed"
expect all_are_summed 1 "5 passed, 2 failed" good bad script
TEST_TIMEOUT=3 expect too_slow_is_a_failure 1 "1 passed, 1 failed" slow
# Once more, alone: who passes then is told all the same, who fails has failed, and where many fail nobody is asked again.
program unsteady <<'END'
echo "ok always"
[ -e "$FIRST_TIME" ] && echo "ok sometimes" && exit
touch "$FIRST_TIME"
echo "not ok sometimes"
END
export FIRST_TIME=$dir/first_time
HAPAX_TEST_AGAIN=2 expect once_more_alone 1 "5 passed, 1 failed" good unsteady bad
if grep -q '^unsteady: .*unsteady: 1 ok, 1 FAILED$' "$dir/output" && [ "$(grep -c '^failed: ' "$dir/output")" -eq 1 ]; then
	echo "ok what_is_unsteady_is_told"
else
	echo "not ok what_is_unsteady_is_told"
fi
rm "$FIRST_TIME"
HAPAX_TEST_AGAIN=2 expect many_failures_are_no_bad_luck 1 "4 passed, 3 failed" unsteady bad script
# What only reckons runs beside the others, and counts like them.
mkdir "$dir/sim"
cp "$dir/good" "$dir/bad" "$dir/dies" "$dir/sim"
expect beside_the_others 0 "4 passed, 0 failed" sim/good good
expect beside_the_others_failures_count 1 "4 passed, 2 failed" good sim/bad sim/dies
expect alone_beside_nobody 1 "1 passed, 1 failed" sim/bad
# What kills servers runs beside the others too, with servers of its own.
mkdir "$dir/chaos"
cp "$dir/bad" "$dir/chaos"
program chaos/apart <<'END'
[ "${HAPAX_TEST_PG:-none}" = "$OUTER_PG" ] || [ "${HAPAX_TEST_REDIS:-none}" = "$OUTER_REDIS" ] || echo "ok apart"
END
export OUTER_PG=${HAPAX_TEST_PG:-} OUTER_REDIS=${HAPAX_TEST_REDIS:-}
if [ -n "$OUTER_PG" ]; then
	expect apart_from_the_others 0 "3 passed, 0 failed" chaos/apart good
	expect apart_from_the_others_failures_count 1 "4 passed, 1 failed" good chaos/apart chaos/bad
	expect what_failed_is_told_again 1 "7 passed, 3 failed" chaos/bad good chaos/apart sim/bad script
	if [ "$(tail -n 7 "$dir/output" | grep -cE '^failed: |^    (\[  FAILED  \] b|not ok two)$')" -eq 6 ]; then
		echo "ok what_failed_is_named_at_the_end"
	else
		echo "not ok what_failed_is_named_at_the_end"
		sed 's/^/| /' "$dir/output"
	fi
	# A side that is through with its own helps with the queue: here each of the two needs the other.
	program meets <<-'END'
		mkdir "$MEETING/$$"
		for _ in {1..600}; do
			[ "$(find "$MEETING" -mindepth 1 -maxdepth 1 | wc -l)" -lt 2 ] || { echo "ok met" && exit; }
			sleep 0.05
		done
		echo "not ok met"
	END
	cp "$dir/meets" "$dir/meets_too"
	export MEETING=$dir/meeting
	mkdir "$MEETING"
	expect a_side_that_is_through_helps 0 "4 passed, 0 failed" sim/good meets meets_too
	program makes.sh <<-'END'
		psql -qX "$HAPAX_TEST_PG" -c "CREATE TABLE mine (id int)" && echo "ok a_database_of_its_own" || echo "not ok a_database_of_its_own"
	END
	cp "$dir/makes.sh" "$dir/makes_too.sh"
	expect a_script_has_a_database_of_its_own 0 "2 passed, 0 failed" makes.sh makes_too.sh
	expect alone_apart_from_nobody 1 "0 passed, 1 failed" chaos/apart
fi
expect a_process_left_behind_is_a_failure 1 "1 passed, 1 failed" leaves_a_process
expect temporary_files_are_removed 0 "1 passed, 0 failed" measures

if grep -q '# mutants: 9 killed of 9' "$dir/output" && ! grep -q noise "$dir/output"; then
	echo "ok measurements_are_shown_and_noise_is_not"
else
	echo "not ok measurements_are_shown_and_noise_is_not"
fi
exit 0
