#!/usr/bin/env bash
# Trees of depth 5 and width 5, cancelled at any point, on SQLite and on two nodes with PostgreSQL, some of them while nodes are killed (-9):
# no child is made after the cancel was answered, every step that was completed and has a compensation is undone once, those of one run in
# reverse, and the root is CANCELLED last. POINTS and KILLS say at how many points and how often (tests/soak/tree_kill.sh).
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os, random
import fleet
import server
from fleet import RUNS, Fleet
from server import Service, until, write

DEPTH, WIDTH = 5, 5
STEPS = DEPTH * 2 * WIDTH  # and more: each level has those of its leaves, and three of its own
POINTS = int(os.environ.get("POINTS", 6))
KILLS = int(os.environ.get("KILLS", 3))
fleet.seed("tree_cancel")


def task(name):
	return {"name": name, "type": "task", "action": "Do", "compensate": "Undo"}


def define(dir, service):
	"""Level 1 is the root: a step, WIDTH branches, a step. One branch of each goes down a level, the others are leaves of two steps."""
	actions = {name: {"kind": "http", "url": f"{service.url}/{name.lower()}", "effect": "keyed"} for name in ("Do", "Undo")}
	for level in range(1, DEPTH + 1):
		deeper = [task("down"), {"name": "next", "type": "child", "workflow": f"level{level + 1}"}] if level < DEPTH else [task("down")]
		branches = {"b0": deeper, **{f"b{n}": [task(f"l{n}"), task(f"m{n}")] for n in range(1, WIDTH)}}
		write(dir / f"workflows/level{level}.json", {"workflow": f"level{level}", "kind": "run", "lease": "1s", "actions": actions, "steps": [
			task("first"), {"name": "all", "type": "parallel", "branches": branches}, task("last")]})


def tree(nodes, run):
	found = nodes.ask("GET", f"{RUNS}?parent={run}&limit=500")["items"]
	return found + [c for kid in found for c in tree(nodes, kid["id"])]


def check_calls(calls):
	"""In the order in which they came first, since a node that died over a call has it made again: a step is done before it is undone,
	each under one key; of one run the later ones are undone first."""
	done, undone, keys = {}, {}, set()
	for at, (path, head, _) in enumerate(calls):
		key = head["idempotency-key"]
		name = key.rsplit("/", 1)[0]
		side = done if path == "/do" else undone
		if key in keys:
			continue
		assert name not in side, f"{path}: {name} has two keys"
		assert path == "/undo" or name not in undone, f"{name} is done after it was undone"
		keys.add(key)
		side[name] = at
	assert set(done) == set(undone), set(done) ^ set(undone)
	by_run = {}
	for name in done:
		by_run.setdefault(name.split("/")[0], []).append(name)
	for names in by_run.values():
		forth = sorted(names, key=done.get)
		assert sorted(names, key=undone.get) == forth[::-1], [(n, done[n], undone[n]) for n in forth]


def cancel_at(nodes, service, after, kills):
	"""False: it was faster."""
	service.calls.clear()
	run = nodes.ask("POST", RUNS, {"definitionId": "level1"})["run"]["id"]
	service.await_calls("/do", after)
	if kills and random.random() < 0.5:
		nodes.kill()
	if nodes.call("POST", f"{RUNS}/{run}/cancel", {})[0] == 409:
		until(lambda: nodes.ask("GET", f"{RUNS}/{run}")["status"] == "COMPLETED", "the end of what was faster")
		return False
	made = {c["id"] for c in tree(nodes, run)}
	nodes.rage(kills)
	until(lambda: nodes.ask("GET", f"{RUNS}/{run}")["status"] == "CANCELLED", "the end")
	members = tree(nodes, run)
	assert {c["id"] for c in members} == made, "a child was made after the cancel was answered"
	assert {c["status"] for c in members} <= {"CANCELLED"}
	ended = nodes.ask("GET", f"{RUNS}/{run}")["completedAt"]
	assert all(c["completedAt"] <= ended for c in members), "CANCELLED is not last"
	check_calls(list(service.calls))
	return True


def test_cancelled_at_any_point(dir):
	for dir, store, nodes_n in fleet.stores(dir):
		with Service() as service:
			define(dir, service)
			with Fleet(dir, store, nodes_n) as nodes:
				points = sorted(random.sample(range(1, 1 + STEPS), min(POINTS, STEPS)))
				cancelled = sum(cancel_at(nodes, service, at, KILLS * (n % 2)) for n, at in enumerate(points))
				print(f"# tree_cancel: {cancelled} of {len(points)} trees were cancelled, after {points} calls; {nodes.kills} kills", flush=True)
				assert cancelled
				nodes.audit()


server.run(globals())
END
