#!/usr/bin/env bash
# Three nodes on one PostgreSQL, killed (-9) in turn, and one on SQLite, with a limit of 2 for each customer. A service that counts: never 3
# calls of one customer are under way at once, every run comes to its end, and no customer waits for those of another.
# CUSTOMERS=50 RUNS=40 tests/with-postgres tests/chaos/test_limits_kill.sh is the long form.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import collections
import fleet
import http.server
import json
import os
import random
import server
import sqlite3
import subprocess
import threading
import time
from fleet import Fleet
from server import Server, until, write

CUSTOMERS = int(os.environ.get("CUSTOMERS", 8))
RUNS = int(os.environ.get("RUNS", 6))
KILLS = int(os.environ.get("KILLS", 5))
NODES = 3
LIMIT = 2


class Counter(http.server.ThreadingHTTPServer):
	"""Counts what is under way of each customer, and never forgets the most there were."""
	daemon_threads = True
	request_queue_size = 256

	def __init__(self):
		super().__init__(("127.0.0.1", 0), Call)
		self.lock, self.now, self.most = threading.Lock(), collections.Counter(), collections.Counter()
		self.done, self.order = collections.Counter(), []
		self.url = f"http://127.0.0.1:{self.server_address[1]}"
		threading.Thread(target=self.serve_forever, daemon=True).start()

	def handle_error(self, *_):
		pass # a node was killed while it was being answered


class Call(http.server.BaseHTTPRequestHandler):
	protocol_version = "HTTP/1.1"

	def do_POST(self):
		body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
		customer, at = body["input"]["customer"], self.server
		with at.lock:
			at.now[customer] += 1
			at.most[customer] = max(at.most[customer], at.now[customer])
		time.sleep(0.15)
		with at.lock:
			at.now[customer] -= 1
			at.done[customer] += 1
			at.order.append(customer)
		self.send_response(200)
		self.send_header("Content-Length", "2")
		self.end_headers()
		self.wfile.write(b"{}")

	def log_message(self, *_):
		pass


def database(name):
	store = os.environ["HAPAX_TEST_PG"]
	subprocess.run(["psql", "-q", store, "-c", f"CREATE DATABASE {name}"], check=True)
	return store.rsplit("/", 1)[0] + f"/{name}"


def define(dir, url, limits={"concurrency": {"by": ".input.customer", "max": LIMIT}}):
	write(dir / "workflows/ship.json", {
		"workflow": "ship", "kind": "run", "lease": "2s",
		"actions": {"Call": {"kind": "http", "url": url, "effect": "keyed"}},
		"limits": limits,
		"steps": [
			{"name": "first", "type": "task", "action": "Call"},
			{"name": "both", "type": "parallel", "branches": {
				"x": [{"name": "x1", "type": "task", "action": "Call"}],
				"y": [{"name": "y1", "type": "wait", "for": "10ms"}, {"name": "y2", "type": "task", "action": "Call"}]}}],
	})


def serve(dir, store, n, *more):
	(dir / str(n)).mkdir(exist_ok=True)
	return Server(dir / str(n), "serve", "--db", store, "--workflows", str(dir / "workflows"), "--node", f"n{n}", *more)


def start(node, customer, n):
	body = {"definitionId": "ship", "input": {"customer": customer}, "idempotencyKey": f"{customer}-{n}"}
	try:
		return node.call("POST", "/api/v1/workflow-runs", body)[0] in (200, 201)
	except OSError:
		return False


def unfinished(node):
	open_runs = 0
	for status in ("PENDING", "RUNNING", "WAITING"):
		page = node.json("GET", f"/api/v1/workflow-runs?status={status}&limit=500", status=200)
		open_runs += len(page["items"]) + (1 if page["cursor"] else 0)
	return open_runs


def held(store):
	count = "SELECT count(*) FROM hx_slot"
	if store.startswith("sqlite:"):
		return str(sqlite3.connect(store.removeprefix("sqlite:")).execute(count).fetchone()[0])
	return subprocess.run(["psql", "-At", store, "-c", count], check=True, capture_output=True, text=True).stdout.strip()


def test_never_three_at_once(dir):
	for dir, store, nodes_n in fleet.stores(dir, nodes=NODES):
		service = Counter()
		define(dir, service.url)
		with Fleet(dir, store, nodes_n) as nodes:
			for n in range(RUNS):
				for c in range(CUSTOMERS):
					until(lambda: start(random.choice(nodes.nodes), f"c{c}", n), "a start")
			nodes.rage(KILLS, 0.2, 0.6)
			until(lambda: unfinished(nodes.nodes[0]) == 0, "all runs to end", 180)
			print(f"# limits_kill: {sum(service.done.values())} calls, at most {max(service.most.values())} of a customer at once, {nodes_n} nodes")
			assert max(service.most.values()) <= LIMIT, service.most
			assert min(service.done.values()) >= 3 * RUNS, service.done
			until(lambda: held(store) == "0", "the last slot to be let go")


def test_a_rate_over_two_nodes(dir):
	if not os.environ.get("HAPAX_TEST_PG"):
		print("[  SKIPPED ] there is no PostgreSQL")
		return
	service, store = Counter(), database(f"rates{os.getpid()}")
	define(dir, service.url, {"rate": {"by": ".input.customer", "max": 4, "per": "1s"}})
	nodes = [serve(dir, store, n) for n in range(2)]
	try:
		began = time.monotonic()
		for n in range(12):
			for customer in ("a", "b"):
				assert start(nodes[n % 2], customer, n)
		until(lambda: unfinished(nodes[0]) == 0, "all runs to end")
		took = time.monotonic() - began
		print(f"# limits_kill: 12 runs of each of two customers at 4 a second took {took:.1f} s")
		assert took >= 2, "more than 4 in a second"
		assert service.done["a"] == service.done["b"] == 36, service.done
	finally:
		for node in nodes:
			node.process.kill()
			node.process.wait()


def define_bills(dir, url):
	limits = {"concurrency": {"by": ".input.customer", "max": LIMIT}}
	write(dir / "workflows/bill.json", {
		"workflow": "bill", "kind": "entity", "status_types": ["open", "closing", "closed"], "initial_status": "open",
		"actions": {"Call": {"kind": "http", "url": url, "effect": "keyed", "limits": limits}},
		"steps": [{"step_id": 1, "step_key": "close", "status": "open", "claim_state": ["closing", "open"], "successful_state": "closed",
			"lease": "2s", "action": "Call", "success_after_effect": ["Call"]}]})
	config = {"lease": "2s", "modules": {"bill": {"janitor": {"every": "1s", "stuck_after": "2s"}}}}
	for n in range(NODES):
		write(dir / f"{n}/hapax.json", config)


def close(nodes, name, customer, told):
	"""Fires until it is closed: who is told that there is no room, or that a node is gone, comes again to the next."""
	for n in range(10000):
		try:
			status, _, body = nodes[n % NODES].call("POST", f"/api/v1/entities/bill/{name}/steps/close", {"input": {"customer": customer}})
		except OSError:
			status, body = 0, b""
		told[status] += 1
		if status == 200 or (b"WRONG_STATUS" in body and b"closed" in body):
			return
		time.sleep(0.05)
	raise AssertionError(f"{name} cannot be closed")


# The step of an entity and its after-effect are calls of one action: whoever makes them, there are never 3.
def test_calls_of_entities_and_after_effects(dir):
	if not os.environ.get("HAPAX_TEST_PG"):
		print("[  SKIPPED ] there is no PostgreSQL")
		return
	service, store, told = Counter(), database(f"bills{os.getpid()}"), collections.Counter()
	define_bills(dir, service.url)
	nodes = [serve(dir, store, n, "--config", "hapax.json") for n in range(NODES)]
	counted = lambda rows: int(subprocess.run(["psql", "-At", store, "-c", f"SELECT count(*) FROM {rows}"], check=True, capture_output=True).stdout)
	try:
		callers = []
		for n in range(RUNS):
			for c in range(CUSTOMERS // 2):
				nodes[0].json("POST", "/api/v1/entities/bill", {"id": f"b{c}-{n}"}, status=201)
				callers.append(threading.Thread(target=close, args=(nodes, f"b{c}-{n}", f"c{c}", told), daemon=True))
		for caller in callers:
			caller.start()
		for k in range(KILLS):
			time.sleep(random.uniform(0.2, 0.6))
			nodes[k % NODES].process.kill()
			nodes[k % NODES].process.wait()
			nodes[k % NODES] = serve(dir, store, k % NODES, "--config", "hapax.json")
		until(lambda: not any(caller.is_alive() for caller in callers), "all to be closed", 180)
		until(lambda: counted("hx_job WHERE ended_at IS NULL") == 0, "all after-effects to be delivered", 180)
		print(f"# limits_kill: {sum(service.done.values())} calls of entities, at most {max(service.most.values())} of a customer at once; told {dict(told)}")
		assert max(service.most.values()) <= LIMIT, service.most
		assert counted("hx_job WHERE error IS NULL") == len(callers), "an after-effect was parked"
		assert told[429], told
		until(lambda: held(store) == "0", "the last slot to be let go")
		subprocess.run([server.HAPAX, "audit", "--db", store], check=True, stdout=subprocess.DEVNULL)
	finally:
		for node in nodes:
			node.process.kill()
			node.process.wait()


def test_one_customer_does_not_starve_the_others(dir):
	service = Counter()
	define(dir, service.url)
	with Server(dir, "serve", "--workflows", "workflows") as hapax:
		for n in range(40):
			assert start(hapax, "big", n)
		for c in range(4):
			for n in range(3):
				assert start(hapax, f"small{c}", n)
		until(lambda: unfinished(hapax) == 0, "all runs to end", 120)
	assert max(service.most.values()) <= LIMIT, service.most
	last = max(i for i, customer in enumerate(service.order) if customer != "big")
	big = service.order[:last].count("big")
	print(f"# limits_kill: {big} of {service.done['big']} calls of the big customer before the last of the small ones")
	assert big < service.done["big"] / 2, service.order


server.run(globals())
END
