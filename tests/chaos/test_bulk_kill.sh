#!/usr/bin/env bash
# kill -9 in the middle of a bulk, on both stores: each item has one result, and each run was cancelled once. ITEMS=10000 for a long one.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import collections
import os
import random
import server
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from server import Server, until, write

ITEMS = int(os.environ.get("ITEMS", "400"))
KILLS = 1
SEED = random.randrange(1 << 32)
print(f"# bulk_kill: seed {SEED}")
random.seed(SEED)


def serve(dir, db):
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


def each_once(dir, db):
	with serve(dir, db) as hapax:
		start_all(hapax)
		body = {"verb": "cancel", "kind": "run", "where": 'customer == "c-True" and status != "CANCELLED"', "idempotencyKey": "one"}
		bulk = hapax.json("POST", "/api/v1/bulk", body, status=202)
		wanted = sum(n % 4 > 0 for n in range(ITEMS))
		assert bulk["selected"] == wanted, bulk
		time.sleep(random.uniform(0, 0.05))
		kill(hapax)
	for n in range(KILLS):
		with serve(dir, db) as hapax:
			assert hapax.json("POST", "/api/v1/bulk", body, status=202)["id"] == bulk["id"]
			before = hapax.json("GET", f"/api/v1/bulk/{bulk['id']}", status=200)["done"]
			until(lambda: hapax.json("GET", f"/api/v1/bulk/{bulk['id']}", status=200)["done"] > before or before == wanted, "one more")
			kill(hapax)
	with serve(dir, db) as hapax:
		until(lambda: hapax.json("GET", f"/api/v1/bulk/{bulk['id']}", status=200)["status"] == "COMPLETED", "the end", seconds=300)
		results = items(hapax, bulk["id"])
		assert len(results) == wanted and len({row["subject"] for row in results}) == wanted, "an item twice, or not at all"
		told = collections.Counter(row["result"] for row in results)
		print(f"# bulk_kill: {ITEMS} runs, {dict(told)}")
		assert told == {"done": wanted}, told
		for row in random.sample(results, min(wanted, 300)):
			assert cancels(hapax, row["subject"]) == 1, f"{row['subject']} was cancelled more than once"


def test_sqlite(dir):
	each_once(dir, "sqlite:h.db")


def test_postgres(dir):
	name = f"bulk_kill_{os.getpid()}"
	url = os.environ["HAPAX_TEST_PG"]
	subprocess.run(["psql", "-qX", url, "-c", f"CREATE SCHEMA {name}"], check=True)
	each_once(dir, f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3D{name}")


server.run(globals())
END
