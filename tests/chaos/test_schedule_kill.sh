#!/usr/bin/env bash
# Three nodes on one PostgreSQL are killed (-9) in turn while schedules have a slot every second: each slot has one run, none is missing.
# All of them begin and end at the same moment, so how many slots there are is known before, however late they are started.
# SCHEDULES=1000 SECONDS_UP=60 tests/with-postgres tests/chaos/test_schedule_kill.sh is the long form.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END2'
import datetime
import os
import random
import server
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from server import Server, until, write

SCHEDULES = int(os.environ.get("SCHEDULES", 20))
SECONDS = int(os.environ.get("SECONDS_UP", 8))
NODES = 3


def moment(key):
	return int(datetime.datetime.fromisoformat(key.split(":", 2)[2].replace("Z", "+00:00")).timestamp())


def serve(dir, store, n):
	return Server(dir / str(n), "serve", "--db", store, "--workflows", str(dir / "workflows"), "--node", f"n{n}")


def kill(node):
	node.process.kill()
	node.process.wait()


def all_runs(node):
	cursor = ""
	while True:
		page = node.json("GET", f"/api/v1/workflow-runs?limit=500{cursor}", status=200)
		yield from page["items"]
		if not page["cursor"]:
			return
		cursor = f"&cursor={page['cursor']}"


def text(moment):
	return datetime.datetime.fromtimestamp(moment, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def put_all(nodes):
	"""Returns their first and their last slot."""
	first = int(time.time()) + 3 + SCHEDULES // 40
	body = {"workflow": "quick", "every": "1s", "overlap": "allow", "catchUp": "all", "from": text(first), "to": text(first + SECONDS - 1)}

	def put(i):
		until(lambda: nodes[i % NODES].call("PUT", f"/api/v1/schedules/s{i}", body)[0] in (200, 201), f"s{i} to be put")

	with ThreadPoolExecutor(4) as threads:
		list(threads.map(put, range(SCHEDULES)))
	assert time.time() < first, "they were not put in time"
	return first, first + SECONDS - 1


def started(store):
	return int(subprocess.run(["psql", "-AtX", store, "-c", "SELECT coalesce(sum(started), 0) FROM hx_schedule"], check=True,
		capture_output=True, text=True).stdout)


def test_each_slot_one_run(dir):
	store = os.environ.get("HAPAX_TEST_PG")
	if not store:
		print("[  SKIPPED ] there is no PostgreSQL")
		return
	name = f"sched{os.getpid()}"
	subprocess.run(["psql", "-q", store, "-c", f"CREATE DATABASE {name}"], check=True)
	own = subprocess.run(["psql", "-At", store, "-c", "SELECT current_database()"], check=True, capture_output=True, text=True).stdout.strip()
	store = store.replace(f"/{own}", f"/{name}", 1) if f"/{own}" in store else store.rstrip("/") + f"/{name}"
	write(dir / "workflows/quick.json", {"workflow": "quick", "kind": "run", "actions": {"a": {"kind": "noop"}},
		"steps": [{"name": "a", "type": "task", "action": "a"}]})
	for n in range(NODES):
		(dir / str(n)).mkdir()
	nodes = [serve(dir, store, n) for n in range(NODES)]
	try:
		first, last = put_all(nodes)
		while time.time() < first:
			time.sleep(0.1)
		kills = 0
		while time.time() < last:
			victim = kills % NODES
			time.sleep(random.uniform(0.2, 0.8))
			kill(nodes[victim])
			nodes[victim] = serve(dir, store, victim)
			kills += 1
		behind = SCHEDULES * SECONDS - started(store)
		until(lambda: started(store) == SCHEDULES * SECONDS, "every slot", seconds=600)
		late = max(0, time.time() - last)
		found = {}
		for run in all_runs(nodes[0]):
			schedule, slot = run["idempotencyKey"].split(":", 2)[1], moment(run["idempotencyKey"])
			assert slot not in found.setdefault(schedule, set()), f"two runs of {run['idempotencyKey']}"
			found[schedule].add(slot)
		assert len(found) == SCHEDULES, f"{len(found)} schedules have started something"
		for schedule, slots in found.items():
			missing = set(range(first, last + 1)) ^ slots
			assert not missing, f"{schedule}: {sorted(missing)} are missing, or too many"
			shown = nodes[1].json("GET", f"/api/v1/schedules/{schedule}", status=200)
			assert shown["started"] == len(slots) and not shown["missed"] and not shown["skipped"], shown
		print(f"# {SCHEDULES} schedules, {kills} kills in {SECONDS} s: {SCHEDULES * SECONDS} slots, one run for each; "
			f"{behind} were to come when the last was due, and {late:.1f} s after it all had")
	finally:
		for node in nodes:
			node.__exit__()
		subprocess.run(["psql", "-q", os.environ["HAPAX_TEST_PG"], "-c", f"DROP DATABASE {name} WITH (FORCE)"], check=False)


server.run(globals())
END2
