#!/usr/bin/env bash
# kill -9, again and again, on a run with many children, on SQLite and on two nodes with PostgreSQL: each is there once, each effect has one
# key, and a cancel in the middle leaves nothing that was done and not undone. ITEMS and KILLS say how many and how often
# (tests/soak/map_kill.sh).
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os
import fleet
import server
from fleet import RUNS, Fleet
from server import Service, until, write

ITEMS = int(os.environ.get("ITEMS", 300))
KILLS = int(os.environ.get("KILLS", 12))
PATIENCE = 60 + ITEMS // 10  # seconds, for calls of a service of one thread on a busy machine
MEMORY_MB_MAX = 100  # whatever ITEMS is
CACHE_MB_MAX = 256  # what SQLite keeps of its file, besides
fleet.seed("children_kill")


def define(dir, service):
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


def keys(service, path):
	return [head["idempotency-key"] for at, head, _ in service.calls if at == path]


def start(nodes, service):
	run = nodes.ask("POST", RUNS, {"definitionId": "tree", "input": {"items": list(range(ITEMS))}, "idempotencyKey": "tree"})["run"]["id"]
	service.await_calls("/do", 5)
	return run


def shown(nodes, run):
	return nodes.ask("GET", f"{RUNS}/{run}")


def peak_mb(node):
	with open(f"/proc/{node.process.pid}/status") as status:
		return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) // 1024


def on_each_store(dir):
	for dir, store, nodes_n in fleet.stores(dir):
		with Service() as service:
			define(dir, service)
			with Fleet(dir, store, nodes_n) as nodes:
				yield nodes, service
				nodes.audit()


def test_each_child_once(dir):
	for nodes, service in on_each_store(dir):
		run = start(nodes, service)
		nodes.rage(KILLS)
		until(lambda: shown(nodes, run)["currentStep"] == "both", "all items", PATIENCE)
		children = until(lambda: len(found := nodes.all(f"{RUNS}?parent={run}")) == ITEMS + 2 and found, "all children")
		memory = max(peak_mb(node) for node in nodes.nodes)
		print(f"# children_kill: {ITEMS} items, {nodes.kills} kills; the last nodes have taken {memory} MB at most", flush=True)
		file = sum(f.stat().st_size for f in nodes.dir.glob("h.db*")) >> 20
		assert memory < MEMORY_MB_MAX + min(file, CACHE_MB_MAX), "what is kept in memory grows with the items"
		nodes.ask("POST", f"{RUNS}/{run}/events/go", {"id": "1"})
		until(lambda: shown(nodes, run)["status"] == "COMPLETED", "the end")
		assert shown(nodes, run)["output"] == [ITEMS, 0, ITEMS - 1], shown(nodes, run)["output"]
		items = [c["parent"]["n"] for c in children if c["parent"]["step"] == "many"]
		assert sorted(items) == list(range(ITEMS)), "children twice, or not at all"
		assert len(set(keys(service, "/do"))) == ITEMS + 1, "an effect under two keys"
		assert not keys(service, "/undo")


def test_a_cancel_in_the_middle(dir):
	for nodes, service in on_each_store(dir):
		run = start(nodes, service)
		nodes.rage(1)
		nodes.ask("POST", f"{RUNS}/{run}/cancel", {})
		nodes.rage(KILLS - 1)
		until(lambda: shown(nodes, run)["status"] == "CANCELLED", "the end", PATIENCE)
		assert {c["status"] for c in nodes.all(f"{RUNS}?parent={run}")} <= {"CANCELLED"}
		done = {key.rsplit("/", 1)[0] for key in keys(service, "/do")}
		undone = {key.rsplit("/", 1)[0] for key in keys(service, "/undo")}
		print(f"# children_kill: {len(done)} done, {len(undone)} undone")
		assert done and done == undone, (len(done), len(undone), done ^ undone)


server.run(globals())
END
