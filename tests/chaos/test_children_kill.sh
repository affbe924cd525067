#!/usr/bin/env bash
# kill -9, again and again, on a run with many children: each is there once, each effect has one key, and a cancel in the middle leaves
# nothing that was done and not undone. ITEMS, KILLS and STORE say how many, how often and where (tests/soak/map_kill.sh).
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os
import random
import server
import time
from server import Server, Service, until, write

ITEMS = int(os.environ.get("ITEMS", 300))
KILLS = int(os.environ.get("KILLS", 12))
STORE = os.environ.get("STORE", "sqlite:h.db")
PATIENCE = 60 + ITEMS // 10  # seconds, for calls of a service of one thread on a busy machine
MEMORY_MB_MAX = 100  # whatever ITEMS is
SEED = random.randrange(1 << 32)
print(f"# children_kill: seed {SEED}")
random.seed(SEED)


def serve(dir, service):
	write(dir / "workflows/leaf.json", {
		"workflow": "leaf", "kind": "run", "lease": "1s",
		"actions": {
			"Do": {"kind": "http", "url": service.url + "/do", "effect": "keyed"},
			"Undo": {"kind": "http", "url": service.url + "/undo", "effect": "keyed"}},
		"steps": [{"name": "act", "type": "task", "action": "Do", "compensate": "Undo"}],
		"output": "{n: .input.n}",
	})
	write(dir / "workflows/tree.json", {
		"workflow": "tree", "kind": "run", "lease": "1s",
		"steps": [
			{"name": "many", "type": "map", "over": ".input.items", "workflow": "leaf", "input": "{n: .item}", "concurrency": 20,
				"save_as": "many"},
			{"name": "both", "type": "parallel", "branches": {
				"x": [{"name": "x1", "type": "child", "workflow": "leaf"}],
				"y": [{"name": "y1", "type": "external_event", "event": "go"}]}}],
		"output": "[(.state.many | length), .state.many[0].n, .state.many[-1].n]",
	})
	return Server(dir, "serve", "--db", STORE, "--workflows", "workflows")


def kill(hapax):
	hapax.process.kill()
	hapax.process.wait()


def keys(service, path):
	return [head["idempotency-key"] for at, head, _ in service.calls if at == path]


def start(hapax):
	return hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "tree", "input": {"items": list(range(ITEMS))}},
		status=201)["run"]["id"]


def status(hapax, run):
	return hapax.json("GET", f"/api/v1/workflow-runs/{run}", status=200)["status"]


def children(hapax, run):
	found, cursor = [], ""
	while True:
		page = hapax.json("GET", f"/api/v1/workflow-runs?parent={run}&limit=500{cursor}", status=200)
		found += page["items"]
		if not page["cursor"]:
			return found
		cursor = f"&cursor={page['cursor']}"


def peak_mb(hapax):
	with open(f"/proc/{hapax.process.pid}/status") as status:
		return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024


def kill_again_and_again(dir, service, run, while_alive=None):
	for n in range(KILLS):
		with serve(dir, service) as hapax:
			time.sleep(random.uniform(0.02, 0.25))
			if while_alive:
				while_alive(hapax, n)
			kill(hapax)


def test_each_child_once(dir):
	with Service() as service:
		with serve(dir, service) as hapax:
			run = start(hapax)
			service.await_calls("/do", 5)
			kill(hapax)
		kill_again_and_again(dir, service, run)
		with serve(dir, service) as hapax:
			until(lambda: hapax.json("GET", f"/api/v1/workflow-runs/{run}", status=200)["currentStep"] == "both", "all items", PATIENCE)
			until(lambda: len(children(hapax, run)) == ITEMS + 2, "all children")
			print(f"# children_kill: {ITEMS} items, {KILLS} kills; the last node has taken {peak_mb(hapax)} MB at most", flush=True)
			assert peak_mb(hapax) < MEMORY_MB_MAX, "what is kept in memory grows with the items"
			hapax.json("POST", f"/api/v1/workflow-runs/{run}/events/go", {}, status=202)
			until(lambda: status(hapax, run) == "COMPLETED", "the end")
			shown = hapax.json("GET", f"/api/v1/workflow-runs/{run}", status=200)
			assert shown["output"] == [ITEMS, 0, ITEMS - 1], shown["output"]
			items = [c["parent"]["n"] for c in children(hapax, run) if c["parent"]["step"] == "many"]
			assert sorted(items) == list(range(ITEMS)), "children twice, or not at all"
			assert len(set(keys(service, "/do"))) == ITEMS + 1, "an effect under two keys"
			assert not keys(service, "/undo")


def test_a_cancel_in_the_middle(dir):
	with Service() as service:
		with serve(dir, service) as hapax:
			run = start(hapax)
			service.await_calls("/do", 5)
			kill(hapax)

		def cancel(hapax, n):
			if n == 1:
				assert hapax.call("POST", f"/api/v1/workflow-runs/{run}/cancel", {})[0] in (200, 202)

		kill_again_and_again(dir, service, run, cancel)
		with serve(dir, service) as hapax:
			until(lambda: status(hapax, run) == "CANCELLED", "the end", PATIENCE)
			assert {c["status"] for c in children(hapax, run)} <= {"CANCELLED"}
		done = {key.rsplit("/", 1)[0] for key in keys(service, "/do")}
		undone = {key.rsplit("/", 1)[0] for key in keys(service, "/undo")}
		print(f"# children_kill: {len(done)} done, {len(undone)} undone")
		assert done and done == undone, (len(done), len(undone), done ^ undone)


server.run(globals())
END
