#!/usr/bin/env bash
# kill -9 in the middle of a bulk, on SQLite and on PostgreSQL with two nodes, in turn: each item has one result, and each run was cancelled
# once. ITEMS and KILLS say how many, and how often, KIND of what (tests/soak/bulk_kill.sh): runs, batches that are cancelled and refunded,
# entities whose held claims are resolved.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import collections
import os
import random
import server
import subprocess
from concurrent.futures import ThreadPoolExecutor
from server import Server, Service, until, write

ITEMS = int(os.environ.get("ITEMS", "400"))
KILLS = int(os.environ.get("KILLS", "2"))
KIND = os.environ.get("KIND", "run")
SEED = random.randrange(1 << 32)
print(f"# bulk_kill: seed {SEED}")
random.seed(SEED)


nowhere = Service()  # nobody knows what became of it
nowhere.answer = (500, b"{}")


def serve(dir, db):
	dir.mkdir(exist_ok=True)
	write(dir / "workflows/order.json", {
		"workflow": "order", "kind": "run", "attributes": {"customer": ".input.customer"},
		"steps": [{"name": "go", "type": "external_event", "event": "go"}],
	})
	write(dir / "workflows/film.json", {
		"workflow": "film", "kind": "batch", "attributes": {"customer": ".data.customer"},
		"actions": {"render": {"kind": "noop"}}, "item_action": "render",
	})
	write(dir / "workflows/bill.json", {
		"workflow": "bill", "kind": "entity", "status_types": ["open", "closing", "closed"], "initial_status": "open",
		"attributes": {"customer": ".data.customer"}, "actions": {"Close": {"kind": "http", "url": f"{nowhere.url}/close"}},
		"steps": [{"step_id": 1, "step_key": "close", "status": "open", "claim_state": ["closing", "open"], "successful_state": "closed",
			"action": "Close", "on_unknown": "hold", "on_5xx": "unknown"}],
	})
	write(dir / "config.json", {"modules": {"bill": {"janitor": {}}}})
	return Server(dir, "serve", "--db", db, "--workflows", "workflows", "--config", "config.json")


def kill(hapax):
	hapax.process.kill()
	hapax.process.wait()


def start_all(hapax):
	hapax.json("POST", "/api/v1/accounts", {"id": "ann", "balance": 1000}, status=201)

	def one(n):
		about = {"customer": f"c-{n % 4 > 0}"}
		if KIND == "run":
			hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "order", "input": about}, status=201)
		elif KIND == "batch":
			hapax.json("POST", "/api/v1/batches", {"workflow": "film", "account": "ann", "items": [{"cost": 5}], "data": about, "hold": True},
				status=201)
		else:
			hapax.json("POST", "/api/v1/entities/bill", {"id": f"e{n}", "data": about}, status=201)
			hapax.json("POST", f"/api/v1/entities/bill/e{n}/steps/close", {}, status=504)

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


BODIES = {
	"run": {"verb": "cancel", "where": 'customer == "c-True" and status != "CANCELLED"'},
	"batch": {"verb": "cancel", "where": 'customer == "c-True" and status == "PENDING"'},
	"entity": {"verb": "resolve", "where": 'workflow == "bill" and customer == "c-True" and held == true',
		"arguments": {"step": "close", "outcome": "done"}},
}
ENDS = {"run": ("CANCELLING", "CANCELLED"), "batch": ("CANCELLED",), "entity": ("closed",)}


def ends(hapax, subject):
	"""How often it was done to it. A batch is torn down after that, by whoever finds it."""
	if KIND == "batch":
		assert hapax.json("GET", f"/api/v1/batches/{subject}?wait=60s", status=200)["status"] == "CANCELLED"
	history = hapax.json("GET", f"/api/v1/history/{subject}", status=200)["items"]
	return sum(row["to"] in ENDS[KIND] for row in history)


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
	print(f"# bulk_kill: {ITEMS} of kind {KIND}, {dict(told)}")
	assert told == {"done": wanted}, told
	with ThreadPoolExecutor(4) as threads:
		assert set(threads.map(lambda row: ends(hapax, row["subject"]), results)) == {1}, "it was done to one more than once"


def each_once(dir, db, nodes_n):
	nodes = [serve(dir / str(n), db) for n in range(nodes_n)]
	try:
		start_all(nodes[0])
		body = BODIES[KIND] | {"kind": KIND, "idempotencyKey": "one"}
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
