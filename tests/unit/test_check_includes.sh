#!/usr/bin/env bash
# scripts/check-includes.sh: each broken tree is refused with its place, the allowed ones pass.
set -u

script=$PWD/scripts/check-includes.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# check NAME EXPECTED FILE INCLUDE : a tree with one file; EXPECTED is "pass" or the line that must be printed.
check() {
	local name=$1 expected=$2 file=$3 include=$4 output code
	rm -rf "$tree/src"
	mkdir -p "$tree/$(dirname "$file")"
	printf '/* A file. */\n#include <stdio.h>\n#include "%s"\n' "$include" >"$tree/$file"
	output=$("$script" "$tree" 2>&1)
	code=$?
	if [ "$expected" = pass ] && [ $code -eq 0 ] && [ -z "$output" ]; then
		echo "ok $name"
	elif [ "$expected" != pass ] && [ $code -ne 0 ] && [[ $output == "$expected"* ]]; then
		echo "ok $name"
	else
		printf 'not ok %s\nexit %s: %s\n' "$name" "$code" "$output"
	fi
}

check every_folder_may_use_itself pass src/base/arena.c base/arena.h
check everyone_may_use_the_public_header pass src/base/error.h hapax.h
check task_may_use_db pass src/task/lane.c db/unit.h
check sim_may_use_flow pass src/sim/world.c flow/subject.h
check cli_may_use_trial pass src/cli/explore.c trial/trial.h
check trial_may_use_sim pass src/trial/rules.c sim/sim.h
check model_may_use_base pass src/model/parse.c base/json.h
check cli_may_use_serve pass src/cli/serve.c serve/server.h
check act_may_use_wire pass src/act/http.c wire/wire.h

check base_may_not_use_db 'src/base/log.c:3: base may not use db' src/base/log.c db/driver.h
check db_may_not_use_task 'src/db/unit.h:3: db may not use task' src/db/unit.h task/task.h
check task_may_not_use_flow 'src/task/lane.c:3: task may not use flow' src/task/lane.c flow/subject.h
check flow_may_not_use_act 'src/flow/run.c:3: flow may not use act' src/flow/run.c act/action.h
check api_may_not_use_sim 'src/api/api.c:3: api may not use sim' src/api/api.c sim/sim.h
check engine_may_not_use_trial 'src/engine/engine.c:3: engine may not use trial' src/engine/engine.c trial/trial.h
check flow_may_not_use_sim 'src/flow/run.c:3: flow may not use sim' src/flow/run.c sim/sim.h
check model_may_not_use_db 'src/model/parse.c:3: model may not use db' src/model/parse.c db/unit.h
check wire_may_not_use_serve 'src/wire/loop.c:3: wire may not use serve' src/wire/loop.c serve/server.h
check serve_may_not_use_api 'src/serve/router.c:3: serve may not use api' src/serve/router.c api/api.h
check api_may_not_use_proxy 'src/api/api.c:3: api may not use proxy' src/api/api.c proxy/proxy.h
check api_may_not_use_cli 'src/api/api.c:3: api may not use cli' src/api/api.c cli/main.h
check no_way_around_by_dots 'src/base/log.c:3: ' src/base/log.c ../db/driver.h
check paths_start_at_src 'src/base/log.c:3: ' src/base/log.c arena.h
check a_new_folder_is_placed_knowingly 'src/util/misc.c:1: ' src/util/misc.c base/arena.h
exit 0
