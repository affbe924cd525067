#!/usr/bin/env bash
# hapax check, by its output and exit codes; the manual says the same as the help.
set -u

hapax=${HAPAX_BUILD:-$PWD/build}/hapax
man=$PWD/man/hapax.1
if [ ! -x "$hapax" ]; then
	echo "[  SKIPPED ] the program is not built in this flavour"
	exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir" || exit 1
unset HAPAX_CONFIG

result() { # name; judges the last command
	if [ "$?" -eq 0 ]; then echo "ok $1"; else
		echo "not ok $1"
		head -20 "$dir/out" "$dir/err"
	fi
}

# Runs hapax and compares its exit code; standard output and error are in out and err.
exits() { # code, arguments…
	local wanted=$1 code
	shift
	"$hapax" "$@" >"$dir/out" 2>"$dir/err"
	code=$?
	[ "$code" -eq "$wanted" ] || { echo "hapax $*: exit code $code, not $wanted" && false; }
}
says() { grep -qF -- "$1" "$dir/out"; }
complains() { grep -qF -- "$1" "$dir/err"; }
silent() { [ ! -s "$dir/$1" ]; }
last() { [ "$(tail -n 1 "$dir/out")" = "$1" ]; }

# A workflow: name, statuses, claim of the step, module.
workflow() {
	cat <<END
{ "workflow": "$1", "kind": "entity", "meta": { "module": "$4" },
  "status_types": [$2], "initial_status": "new",
  "steps": [ { "step_id": 1, "step_key": "go", "status": "new",
               "claim_state": $3,
               "successful_state": "done" } ] }
END
}

# A run: name, its one step.
run() {
	cat <<END
{ "workflow": "$1", "kind": "run",
  "actions": { "mail": { "kind": "http", "url": "http://127.0.0.1:9/mail", "effect": "keyed" } },
  "steps": [
    { "name": "first", $2 } ] }
END
}

mkdir good warned broken empty nested nested/inner.d runs broken_runs
workflow one '"new", "going", "done"' '["going", "new"]' money >good/a.json
workflow two '"new", "done"' null stock >good/b.json
workflow odd '"new", "done", "lost"' null stock >warned/odd.json
workflow one '"new", "going", "done"' '["going", "going"]' money >broken/a.json
workflow two '"new", "done"' '{"admin": ["nwe", "new"]}' money >broken/b.json
echo '{ "workflow": ' >broken/c.json
workflow three '"new", "done", "lost"' null money >broken/d.json
cp good/a.json nested/a.json
cp broken/c.json nested/inner.d/c.json
echo '{ "modules": { "money": { "janitor": {} } } }' >covers.json
echo '{ "modules": { "stock": { "janitor": {} } } }' >uncovers.json
echo '{ "modles": {} }' >misspelt.json

exits 0 check good && last "2 files, 0 errors, 0 warnings" && silent err
result a_clean_folder
exits 0 check good/a.json && last "1 file, 0 errors, 0 warnings"
result a_clean_file
exits 0 check --json good && [ "$(cat out)" = '{"findings":[],"files":2,"errors":0,"warnings":0}' ]
result clean_as_json
exits 0 check nested && last "1 file, 0 errors, 0 warnings"
result folders_are_not_searched_through

exits 0 check warned && says 'warned/odd.json:2: warning: workflow odd: unreached: nothing reaches status "lost"' &&
	last "1 file, 0 errors, 1 warning" && silent err
result warnings_pass
exits 1 check warned --strict && last "1 file, 0 errors, 1 warning" && complains "--strict"
result but_not_when_strict
exits 0 check --strict good
result strict_and_clean

exits 1 check broken && says 'broken/a.json:4: error: workflow one, step go, requester anyone else: rule 3: ' &&
	says 'broken/b.json:4: error: workflow two, step go, requester admin: rule 2: claim_into "nwe"' &&
	says 'broken/c.json:2: error: json: ' && says 'broken/d.json:2: warning: ' &&
	last "4 files, 3 errors, 1 warning" && complains "3 errors"
result all_findings_of_all_files
exits 1 check --json broken good && says '{"findings":[{"severity":"error","file":"broken/a.json","line":4,"workflow":"one","step":"go","requester":"anyone else","rule":"rule 3","text":' &&
	says '"files":6,"errors":3,"warnings":1}' && [ "$(wc -l <out)" -eq 1 ] && complains '"code":"DEFINITION_INVALID"'
result as_json
exits 1 check good good/a.json && says 'good/a.json:1: error: workflow one: duplicate: workflow one is also defined in good/a.json'
result names_are_unique
exits 1 check nowhere.json good && says "nowhere.json: error: file: No such file" && last "2 files, 1 error, 0 warnings"
result a_path_that_is_not_there
exits 1 check empty && says "there is no *.json in this folder"
result an_empty_folder
mkdir mixed && cp covers.json mixed/hapax.json && cp good/a.json mixed && exits 1 check mixed &&
	says "mixed/hapax.json: error: file: this is a configuration, and no definition: it goes with --config" && last "2 files, 1 error, 0 warnings" &&
	echo '{ "modules": {}, "workflow": "x" }' >mixed/hapax.json && exits 1 check mixed && says 'missing field: "kind" is missing' && ! says "a configuration"
result a_configuration_among_definitions
exits 2 check && complains "check wants PATH… (hapax check --help)"
result where_help_is_to_be_had

run order '"type": "task", "action": "mail", "input": "{to: .input.to}"' >runs/a.json
workflow one '"new", "going", "done"' '["going", "new"]' money >runs/b.json
run order '"type": "task", "action": "mial"' >broken_runs/a.json
run parcel '"type": "task", "action": "mail", "input": "{to: .inptu.to}"' >broken_runs/b.json
run odd '"type": "wait", "for": "0s"' >broken_runs/c.json
run doubt '"type": "condition", "when": ".state.nothing"' >broken_runs/d.json
echo '{ "workflow": "render", "kind": "batch", "item_action": "x", "actions": { "x": { "kind": "noop" } } }' >runs/c.json
echo '{ "workflow": "render", "kind": "batch", "item_action": "x" }' >broken_runs/e.json

exits 0 check runs --config covers.json --strict && last "3 files, 0 errors, 0 warnings"
result all_kinds
exits 1 check runs good && says 'good/a.json:1: error: workflow one: duplicate: workflow one is also defined in runs/b.json'
result names_are_unique_beside_runs
workflow order '"new", "done"' null money >broken_runs/z.json
exits 1 check runs broken_runs/z.json &&
	says 'broken_runs/z.json:1: error: workflow order: duplicate: workflow order is also defined in runs/a.json'
result names_are_unique_over_both_kinds
rm broken_runs/z.json
exits 1 check broken_runs &&
	says 'broken_runs/a.json:4: error: workflow order, step first: reference: ' && says 'did you mean "mail"?' &&
	says 'broken_runs/b.json:4: error: workflow parcel, step first: expression: input: column 6: ' &&
	says 'broken_runs/c.json:4: error: workflow odd, step first: ' && says '0s' &&
	says 'broken_runs/d.json:4: warning: workflow doubt, step first: reference: ' &&
	says 'broken_runs/e.json:1: error: workflow render: reference: item_action: there is no action "x"' &&
	last "5 files, 4 errors, 2 warnings"
result all_findings_of_runs
exits 1 check --json broken_runs/a.json && says '"file":"broken_runs/a.json","line":4,"workflow":"order","step":"first"'
result findings_of_runs_as_json

exits 0 check good --config covers.json && last "2 files, 0 errors, 0 warnings"
result covered
exits 1 check good --config uncovers.json &&
	says 'good/a.json:4: error: workflow one, step go, requester anyone else: coverage: ' && says "module money" &&
	last "2 files, 1 error, 0 warnings"
result uncovered
mkdir programs
echo '{ "workflow": "w", "kind": "run", "actions": { "go": { "kind": "exec", "argv": ["true"] } }, "steps": [ { "name": "s", "type": "task", "action": "go" } ] }' >programs/w.json
echo '{ "exec": { "enabled": true } }' >runs.json
exits 0 check programs --config covers.json && says 'programs/w.json:1: warning: workflow w: exec: action go will fail: add "exec": {"enabled": true}' &&
	last "1 file, 0 errors, 1 warning" && exits 0 check programs --config runs.json --strict && exits 0 check programs --strict
result programs_that_the_configuration_does_not_let_run
HAPAX_CONFIG=uncovers.json exits 1 check good && HAPAX_CONFIG=uncovers.json exits 0 check good --config=covers.json
result the_configuration_from_the_environment
exits 1 check good --config misspelt.json && says 'misspelt.json:1: error: unknown field: "modles"; did you mean "modules"?' &&
	last "2 files, 1 error, 0 warnings"
result a_configuration_with_errors
exits 1 check good --config nowhere.json && says "nowhere.json: error: file: "
result a_configuration_that_is_not_there

exits 2 check && complains "PATH" && silent out && exits 2 check --strict && exits 2 check good --config && exits 2 check --stric good &&
	complains "did you mean --strict?" && exits 2 check -x good
result usage
exits 0 check --help && says "usage: hapax check PATH… [--config FILE] [--strict] [--explore] [--json]" && says "coverage is not checked"
result help
printf 'broken\n' | exits 1 check broken && ! grep -q "$(printf '\033')" out
result no_colours_beside_a_terminal
if command -v script >/dev/null; then
	TERM=xterm NO_COLOR='' script -qec "$hapax check broken" /dev/null >out 2>err </dev/null
	grep -q "$(printf '\033')\[1;31merror" out && grep -q "$(printf '\033')\[1;33mwarning" out
	result colours_on_a_terminal
	TERM=xterm NO_COLOR=1 script -qec "$hapax check broken" /dev/null >out 2>err </dev/null
	! grep -q "$(printf '\033')\[" out
	result no_colours_where_none_are_wanted
fi
"$hapax" check good >/dev/full 2>err
[ $? -eq 70 ]
result output_that_cannot_be_written_is_an_error

bad=
for flag in $("$hapax" check --help | grep -o -- '--[a-z]*' | sort -u); do
	grep -qF -- "${flag//-/\\-}" "$man" || bad="$bad $flag"
done
for code in $("$hapax" check --help | sed -n 's/^  \([0-9]\+\) .*/\1/p' | sort -u); do
	grep -q "^\.B $code\$" "$man" || bad="$bad $code"
done
[ -z "$bad" ] || echo "not in hapax.1:$bad"
[ -z "$bad" ]
result the_manual_has_every_option_and_exit_code
exit 0
