"""
For scripts that kill nodes (-9): one node on SQLite, several on PostgreSQL, each in a folder of its own, killed in turn and started again.

	for dir, store, nodes in fleet.stores(dir, nodes=2):
		with Fleet(dir, store, nodes) as fleet:
			run = fleet.ask("POST", RUNS, {…, "idempotencyKey": "1"})["run"]["id"]
			fleet.rage(kills=8)

Definitions are in dir/workflows. What is asked is asked again, of another node, until one answers: give it a key.
"""
import os
import random
import subprocess
import threading
import time

import server
from server import Server, until

RUNS = "/api/v1/workflow-runs"


def stores(dir, nodes=2):
	"""A folder, a store and its number of nodes each: SQLite, and PostgreSQL where there is one, in a database of its own."""
	postgres = os.environ.get("HAPAX_TEST_PG")
	for n, store in enumerate(["sqlite"] + [postgres] * bool(postgres)):
		here = dir / f"{n}"
		here.mkdir()
		if store == "sqlite":
			yield here, f"sqlite:{here}/h.db", 1
			continue
		name = f"fleet_{os.getpid()}_{random.randrange(1 << 30)}"
		subprocess.run(["psql", "-qX", postgres, "-c", f"CREATE DATABASE {name}"], check=True)
		yield here, f"{postgres.rpartition('/')[0]}/{name}", nodes
		subprocess.run(["psql", "-qX", postgres, "-c", f"DROP DATABASE {name} WITH (FORCE)"], check=True)


class Fleet:
	def __init__(self, dir, store, nodes):
		self.dir, self.store, self.kills = dir, store, 0
		for n in range(nodes):
			(dir / f"n{n}").mkdir(exist_ok=True)
		self.nodes = []
		for n in range(nodes):
			self.nodes.append(self.serve(n))

	def __enter__(self):
		return self

	def __exit__(self, *_):
		for node in self.nodes:
			node.__exit__()

	def serve(self, n):
		return Server(self.dir / f"n{n}", "serve", "--db", self.store, "--workflows", str(self.dir / "workflows"), "--node", f"n{n}")

	def kill(self):
		"""The next one."""
		n = self.kills % len(self.nodes)
		self.nodes[n].__exit__()
		self.nodes[n] = self.serve(n)
		self.kills += 1

	def rage(self, kills, low=0.02, high=0.25):
		for _ in range(kills):
			time.sleep(random.uniform(low, high))
			self.kill()

	def rage_while(self, work, kills):
		"""Kills while `work` is under way in a thread, at most so often; what that raises is raised."""
		failure = []

		def guarded():
			try:
				work()
			except BaseException as e:
				failure.append(e)

		thread = threading.Thread(target=guarded)
		thread.start()
		while thread.is_alive() and kills > 0:
			self.rage(1)
			kills -= 1
		thread.join()
		if failure:
			raise failure[0]

	def call(self, method, path, body=None):
		"""Asks until somebody answers: status and text."""
		def one():
			try:
				status, _, text = random.choice(self.nodes).call(method, path, body)
			except OSError:
				return None
			return (status, text) if status and status < 500 else None

		return until(one, f"an answer to {method} {path}")

	def ask(self, method, path, body=None, status=(200, 201, 202)):
		got, text = self.call(method, path, body)
		assert got in status, f"{method} {path}: {got}: {text[:500]!r}"
		return server.json.loads(text)

	def all(self, path):
		"""Every page of a list."""
		path += "&" if "?" in path else "?"
		found, cursor = [], ""
		while True:
			page = self.ask("GET", f"{path}limit=500{cursor}")
			found += page["items"]
			if not page["cursor"]:
				return found
			cursor = f"&cursor={page['cursor']}"

	def audit(self):
		audit = subprocess.run([server.HAPAX, "audit", "--db", self.store], cwd=self.dir, capture_output=True)
		assert audit.returncode == 0, audit.stdout


def seed(name):
	n = int(os.environ.get("SEED") or random.randrange(1 << 32))
	print(f"# {name}: seed {n}", flush=True)
	random.seed(n)
