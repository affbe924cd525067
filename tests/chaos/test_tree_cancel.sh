#!/usr/bin/env bash
# Trees of depth 5 and width 5, cancelled at any point, on every store: no child is made after the cancel was answered, every step that was
# completed and has a compensation is undone once, those of one run in reverse, and the root is CANCELLED last.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os, random, subprocess
import server
from server import Server, Service, until, write

RUNS = "/api/v1/workflow-runs"
STORES = ["sqlite:h.db"] + ([os.environ["HAPAX_TEST_PG"]] if os.environ.get("HAPAX_TEST_PG") else [])
DEPTH, WIDTH = 5, 5
SEED = random.randrange(1 << 32)
print(f"# tree_cancel: seed {SEED}")
random.seed(SEED)


def task(name):
	return {"name": name, "type": "task", "action": "Do", "compensate": "Undo"}


def serve(dir, store, service):
	"""Level 1 is the root: a step, WIDTH branches, a step. One branch of each goes down a level, the others are leaves of two steps."""
	actions = {"Do": {"kind": "http", "url": service.url + "/do", "effect": "keyed"}, "Undo": {"kind": "http", "url": service.url + "/undo", "effect": "keyed"}}
	for level in range(1, DEPTH + 1):
		deeper = [task("down"), {"name": "next", "type": "child", "workflow": f"level{level + 1}"}] if level < DEPTH else [task("down")]
		branches = {"b0": deeper, **{f"b{n}": [task(f"l{n}"), task(f"m{n}")] for n in range(1, WIDTH)}}
		write(dir / f"workflows/level{level}.json", {"workflow": f"level{level}", "kind": "run", "actions": actions, "steps": [
			task("first"), {"name": "all", "type": "parallel", "branches": branches}, task("last")]})
	return Server(dir, "serve", "--db", store, "--workflows", "workflows")


def tree(hapax, run):
	found = hapax.json("GET", f"{RUNS}?parent={run}&limit=500", status=200)["items"]
	return found + [c for kid in found for c in tree(hapax, kid["id"])]


def check_calls(calls):
	"""In the order in which they came: a step is done before it is undone; of one run the later ones are undone first."""
	done, undone = {}, {}
	for at, (path, head, _) in enumerate(calls):
		name = head["idempotency-key"].rsplit("/", 1)[0]
		if path == "/do":
			done.setdefault(name, at)
		else:
			assert name not in undone, f"{name} is undone twice"
			undone[name] = at
	assert set(done) == set(undone), set(done) ^ set(undone)
	by_run = {}
	for name in done:
		by_run.setdefault(name.split("/")[0], []).append(name)
	for names in by_run.values():
		forth = sorted(names, key=done.get)
		assert sorted(names, key=undone.get) == forth[::-1], [(n, done[n], undone[n]) for n in forth]


def cancel_at(hapax, service, after):
	service.calls.clear()
	run = hapax.json("POST", RUNS, {"definitionId": "level1"}, status=201)["run"]["id"]
	service.await_calls("/do", after)
	if hapax.call("POST", f"{RUNS}/{run}/cancel", {})[0] == 409:
		return False  # it was faster
	made = {c["id"] for c in tree(hapax, run)}
	until(lambda: hapax.json("GET", f"{RUNS}/{run}", status=200)["status"] == "CANCELLED", "the end")
	members = tree(hapax, run)
	assert {c["id"] for c in members} == made, "a child was made after the cancel was answered"
	assert {c["status"] for c in members} <= {"CANCELLED"}
	ended = hapax.json("GET", f"{RUNS}/{run}", status=200)["completedAt"]
	assert all(c["completedAt"] <= ended for c in members), "CANCELLED is not last"
	check_calls(list(service.calls))
	return True


def test_cancelled_at_any_point(dir):
	for i, store in enumerate(STORES):
		here = dir / str(i)
		here.mkdir()
		with Service() as service, serve(here, store, service) as hapax:
			points = sorted(random.sample(range(1, 1 + DEPTH * (2 * WIDTH)), 8))
			cancelled = sum(cancel_at(hapax, service, n) for n in points)
			print(f"# tree_cancel: {cancelled} of {len(points)} trees were cancelled, after {points} calls")
			assert cancelled
			audit = subprocess.run([server.HAPAX, "audit", "--db", store], cwd=here, capture_output=True)
			assert audit.returncode == 0, audit.stdout


server.run(globals())
END
