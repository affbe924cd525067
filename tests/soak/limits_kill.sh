#!/usr/bin/env bash
# A limit of 2 by customer, 50 customers, 3 nodes on one PostgreSQL, killed (-9) in turn: never 3 calls of a customer at once, asked of a
# service that counts, and every customer gets its share within 20 %, although one of them has ten times the work of the others. Then all
# runs come to their end, and no slot is left.
#
# A kill costs whoever was at work on that node the rest of a lease, by chance: a third of all slots, 5 of each 20 seconds. In a minute with
# nine kills that alone is a share of 80 to 120 %, of customers that have the same luck on the average; in four minutes with twelve it is not.
#
# The limit is once of the action and once of the workflow: tests/with-postgres tests/soak/limits_kill.sh
# CUSTOMERS=50 SECONDS_EACH=240 KILL_EVERY=20 LIMITS=action,workflow
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import collections
import concurrent.futures
import http.server
import json
import os
import random
import server
import subprocess
import threading
import time
from server import Server, until, write

CUSTOMERS = int(os.environ.get("CUSTOMERS", 50))
SECONDS = float(os.environ.get("SECONDS_EACH", 240))
NODES, LIMIT, BIG = 3, 2, 10
CALL_S = 1.5 # a call lasts that long, also one whose node was killed
LEASE = "5s" # longer than that: after it a call is not its run's any more
KILL_EVERY_S = float(os.environ.get("KILL_EVERY", 20))


class Counter(http.server.ThreadingHTTPServer):
	"""Counts what is under way of each customer, and never forgets the most there were."""
	daemon_threads = True
	request_queue_size = 1024

	def __init__(self):
		super().__init__(("127.0.0.1", 0), Call)
		self.lock, self.now, self.most, self.done = threading.Lock(), collections.Counter(), collections.Counter(), collections.Counter()
		self.call_s, self.open = CALL_S, threading.Event() # nobody is served before all have their work
		self.url = f"http://127.0.0.1:{self.server_address[1]}"
		threading.Thread(target=self.serve_forever, daemon=True).start()

	def handle_error(self, *_):
		pass # a node was killed while it was being answered


class Call(http.server.BaseHTTPRequestHandler):
	protocol_version = "HTTP/1.1"

	def do_POST(self):
		customer, at = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]["customer"], self.server
		with at.lock:
			at.now[customer] += 1
			at.most[customer] = max(at.most[customer], at.now[customer])
		at.open.wait()
		time.sleep(at.call_s)
		with at.lock:
			at.now[customer] -= 1
			at.done[customer] += 1
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


def define(dir, url, of):
	limits = {"concurrency": {"by": ".input.customer", "max": LIMIT}}
	call = {"kind": "http", "url": url, "effect": "keyed", "timeout": "10m"}
	write(dir / "workflows/ship.json", {
		"workflow": "ship", "kind": "run", "lease": LEASE,
		"actions": {"call": {**call, **({"limits": limits} if of == "action" else {})}},
		**({"limits": limits} if of == "workflow" else {}),
		"steps": [{"name": "call", "type": "task", "action": "call"}]})


def serve(dir, store, n):
	(dir / str(n)).mkdir(exist_ok=True)
	return Server(dir / str(n), "serve", "--db", store, "--workflows", str(dir / "workflows"), "--node", f"n{n}")


def start(node, customer, n):
	body = {"definitionId": "ship", "input": {"customer": customer}, "idempotencyKey": f"{customer}-{n}"}
	until(lambda: node.call("POST", "/api/v1/workflow-runs", body)[0] in (200, 201), "a start") # 503 on a busy machine: its key makes it one


def load(nodes, each):
	"""The big one first: whoever came first must not have it all."""
	work = [("c0", n) for n in range(each * BIG)] + [(f"c{c}", n) for n in range(each) for c in range(1, CUSTOMERS)]
	with concurrent.futures.ThreadPoolExecutor(8) as pool:
		list(pool.map(lambda w: start(nodes[w[1] % NODES], *w), work))
	return len(work)


def ask(store, sql):
	return subprocess.run(["psql", "-At", store, "-c", sql], check=True, capture_output=True, text=True).stdout.strip()


def kill(dir, store, nodes, k):
	nodes[k].process.kill()
	nodes[k].process.wait()
	nodes[k] = serve(dir, store, k)


def watch(dir, store, nodes, service):
	"""What each customer got while nodes were killed, and all of them had more to do."""
	with service.lock:
		before = collections.Counter(service.done)
	end, k = time.monotonic() + SECONDS, 0
	while time.monotonic() < end:
		time.sleep(KILL_EVERY_S * random.uniform(0.7, 1.3))
		kill(dir, store, nodes, k % NODES)
		k += 1
	with service.lock:
		return {f"c{c}": service.done[f"c{c}"] - before[f"c{c}"] for c in range(CUSTOMERS)}, k


def check_shares(got, kills, of):
	mean = sum(got.values()) / len(got)
	least, most = min(got.values()), max(got.values())
	print(f"# limits_kill: of the {of}: {sum(got.values())} calls of {len(got)} customers in {SECONDS:.0f} s, {kills} kills; each {least} to {most}, "
		f"mean {mean:.1f}; the one with {BIG} times the work {got['c0']}", flush=True)
	assert least >= 0.8 * mean and most <= 1.2 * mean, got


def soak(dir, of):
	service, store = Counter(), database(f"limits_{of}_{os.getpid()}")
	define(dir, service.url, of)
	nodes = [serve(dir, store, n) for n in range(NODES)]
	try:
		runs = load(nodes, int((SECONDS + 30) * LIMIT / CALL_S))
		service.open.set()
		got, kills = watch(dir, store, nodes, service)
		left = int(ask(store, "SELECT count(DISTINCT input) FROM hx_run WHERE completed_at IS NULL"))
		assert left == CUSTOMERS, f"only {left} customers had more to do than was done: nothing was shared"
		service.call_s = 0 # the rest as fast as it goes
		until(lambda: ask(store, "SELECT count(*) FROM hx_run WHERE completed_at IS NULL") == "0", "all runs to end", 900)
		statuses = ask(store, "SELECT s.status, count(*) FROM hx_run r JOIN hx_subject s ON s.id = r.subject GROUP BY 1")
		assert statuses == f"COMPLETED|{runs}", statuses
		print(f"# limits_kill: of the {of}: {runs} runs are completed; at most {max(service.most.values())} calls of a customer at once", flush=True)
		assert max(service.most.values()) == LIMIT, service.most
		assert ask(store, "SELECT count(*) FROM hx_slot") == "0", "a slot is left"
		check_shares(got, kills, of) # last: what is promised comes before what is fair
	finally:
		for node in nodes:
			node.process.kill()
			node.process.wait()


def test_of_an_action(dir):
	soak(dir, "action")


def test_of_a_workflow(dir):
	soak(dir, "workflow")


assert os.environ.get("HAPAX_TEST_PG"), "tests/with-postgres tests/soak/limits_kill.sh"
wanted = os.environ.get("LIMITS", "action,workflow").split(",")
server.run({k: v for k, v in globals().items() if k.rsplit("_", 1)[-1] in wanted})
END
