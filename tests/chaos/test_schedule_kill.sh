#!/usr/bin/env bash
# One node on SQLite, and three on one PostgreSQL, are killed (-9) in turn while schedules have a slot every second: each slot has one run,
# none is missing.
# All of them begin and end at the same moment, so how many slots there are is known before, however late they are started.
# SCHEDULES=1000 SECONDS_UP=60 tests/with-postgres tests/chaos/test_schedule_kill.sh is the long form.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END2'
import datetime
import fleet
import os
import time
from concurrent.futures import ThreadPoolExecutor
import server
from fleet import RUNS, Fleet
from server import until, write

SCHEDULES = int(os.environ.get("SCHEDULES", 20))
SECONDS = int(os.environ.get("SECONDS_UP", 8))
NODES = 3


def moment(key):
	return int(datetime.datetime.fromisoformat(key.split(":", 2)[2].replace("Z", "+00:00")).timestamp())


def text(moment):
	return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def put_all(nodes):
	"""Returns their first and their last slot."""
	first = int(time.time()) + 3 + SCHEDULES // 40
	body = {"workflow": "quick", "every": "1s", "overlap": "allow", "catchUp": "all", "from": text(first), "to": text(first + SECONDS - 1)}

	def put(i):
		nodes.ask("PUT", f"/api/v1/schedules/s{i}", body)

	with ThreadPoolExecutor(4) as threads:
		list(threads.map(put, range(SCHEDULES)))
	assert time.time() < first, "they were not put in time"
	return first, first + SECONDS - 1


def started(nodes):
	return sum(schedule["started"] for schedule in nodes.all("/api/v1/schedules"))


def check_slots(nodes, first, last):
	found = {}
	for run in nodes.all(RUNS):
		schedule, slot = run["idempotencyKey"].split(":", 2)[1], moment(run["idempotencyKey"])
		assert slot not in found.setdefault(schedule, set()), f"two runs of {run['idempotencyKey']}"
		found[schedule].add(slot)
	assert len(found) == SCHEDULES, f"{len(found)} schedules have started something"
	for schedule, slots in found.items():
		missing = set(range(first, last + 1)) ^ slots
		assert not missing, f"{schedule}: {sorted(missing)} are missing, or too many"
		shown = nodes.ask("GET", f"/api/v1/schedules/{schedule}")
		assert shown["started"] == len(slots) and not shown["missed"] and not shown["skipped"], shown


def test_each_slot_one_run(dir):
	for dir, store, nodes_n in fleet.stores(dir, nodes=NODES):
		write(dir / "workflows/quick.json", {"workflow": "quick", "kind": "run", "actions": {"a": {"kind": "noop"}},
			"steps": [{"name": "a", "type": "task", "action": "a"}]})
		with Fleet(dir, store, nodes_n) as nodes:
			first, last = put_all(nodes)
			until(lambda: time.time() >= first, "the first slot")
			while time.time() < last:
				nodes.rage(1, 0.2, 0.8)
			behind = SCHEDULES * SECONDS - started(nodes)
			until(lambda: started(nodes) == SCHEDULES * SECONDS, "every slot", seconds=600)
			late = max(0, time.time() - last)
			check_slots(nodes, first, last)
			print(f"# {SCHEDULES} schedules, {nodes.kills} kills of {nodes_n} nodes in {SECONDS} s: {SCHEDULES * SECONDS} slots, one run for each; "
				f"{behind} were to come when the last was due, and {late:.1f} s after it all had", flush=True)


server.run(globals())
END2
