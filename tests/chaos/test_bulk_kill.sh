#!/usr/bin/env bash
# kill -9 in the middle of a bulk, on SQLite and on PostgreSQL with two nodes, in turn: each item has one result, and each run was cancelled
# once. ITEMS and KILLS say how many, and how often (tests/soak/bulk_kill.sh).
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import collections
import os
import random
import server
import subprocess
from concurrent.futures import ThreadPoolExecutor
from server import Server, until, write

ITEMS = int(os.environ.get("ITEMS", "400"))
KILLS = int(os.environ.get("KILLS", "2"))
SEED = random.randrange(1 << 32)
print(f"# bulk_kill: seed {SEED}")
random.seed(SEED)


def serve(dir, db):
	dir.mkdir(exist_ok=True)
	write(dir / "workflows/order.json", {
		"workflow": "order", "kind": "run", "attributes": {"customer": ".input.customer"},
		"steps": [{"name": "go", "type": "external_event", "event": "go"}],
	})
	return Server(dir, "serve", "--db", db, "--workflows", "workflows")


def kill(hapax):
	hapax.process.kill()
	hapax.process.wait()


def start_all(hapax):
	def one(n):
		hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "order", "input": {"customer": f"c-{n % 4 > 0}"}}, status=201)

	with ThreadPoolExecutor(4) as threads:
		list(threads.map(one, range(ITEMS)))


def items(hapax, bulk):
	found, cursor = [], ""
	while True:
		page = hapax.json("GET", f"/api/v1/bulk/{bulk}/items?limit=500{cursor}", status=200)
		found += page["items"]
		if not page["cursor"]:
			return found
		cursor = f"&cursor={page['cursor']}"


def cancels(hapax, run):
	history = hapax.json("GET", f"/api/v1/workflow-runs/{run}/history", status=200)["items"]
	return sum(row["to"] in ("CANCELLING", "CANCELLED") for row in history)


def progress(hapax, bulk):
	return hapax.json("GET", f"/api/v1/bulk/{bulk}", status=200)


def kill_in_turn(dir, db, nodes, bulk, body, wanted):
	"""Each time one more has its result: then the next node goes, and comes back. The bulk is asked for again, and is the same one."""
	for n in range(KILLS):
		at = n % len(nodes)
		before = progress(nodes[at], bulk)["done"]
		until(lambda: progress(nodes[at], bulk)["done"] > before or before == wanted, "one more", seconds=120)
		kill(nodes[at])
		nodes[at] = serve(dir / str(at), db)
		assert nodes[at].json("POST", "/api/v1/bulk", body, status=202)["id"] == bulk


def look_at_all(hapax, bulk, wanted):
	results = items(hapax, bulk)
	assert len(results) == wanted and len({row["subject"] for row in results}) == wanted, "an item twice, or not at all"
	told = collections.Counter(row["result"] for row in results)
	print(f"# bulk_kill: {ITEMS} runs, {dict(told)}")
	assert told == {"done": wanted}, told
	with ThreadPoolExecutor(4) as threads:
		assert set(threads.map(lambda row: cancels(hapax, row["subject"]), results)) == {1}, "a run was cancelled more than once"


def each_once(dir, db, nodes_n):
	nodes = [serve(dir / str(n), db) for n in range(nodes_n)]
	try:
		start_all(nodes[0])
		body = {"verb": "cancel", "kind": "run", "where": 'customer == "c-True" and status != "CANCELLED"', "idempotencyKey": "one"}
		bulk = nodes[0].json("POST", "/api/v1/bulk", body, status=202)
		wanted = sum(n % 4 > 0 for n in range(ITEMS))
		assert bulk["selected"] == wanted, bulk
		kill_in_turn(dir, db, nodes, bulk["id"], body, wanted)
		until(lambda: progress(nodes[0], bulk["id"])["status"] == "COMPLETED", "the end", seconds=600)
		look_at_all(nodes[-1], bulk["id"], wanted)
	finally:
		for node in nodes:
			node.__exit__()


def test_sqlite(dir):
	each_once(dir, f"sqlite:{dir}/h.db", 1)


def test_postgres(dir):
	name = f"bulk_kill_{os.getpid()}"
	url = os.environ["HAPAX_TEST_PG"]
	subprocess.run(["psql", "-qX", url, "-c", f"CREATE SCHEMA {name}"], check=True)
	each_once(dir, f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}", 2)


server.run(globals())
END
