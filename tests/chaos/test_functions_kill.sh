#!/usr/bin/env bash
# Functions of five steps in real workers, one of which is killed every 300 ms, on nodes that are killed in turn; on SQLite one node, on
# PostgreSQL two. A node that is killed comes back where it was, and whoever asked it goes on. All come to their end, each step's effect is
# there once by its key, and what is claimed was executed once.
# FUNCTIONS=1000 for a long one; WORKER_KILLS and NODE_KILLS say when it is left in peace.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import collections
import contextlib
import os
import pathlib
import random
import server
import signal
import sqlite3
import subprocess
import sys
import time
from server import Server, until

FUNCTIONS = int(os.environ.get("FUNCTIONS", "60"))
WORKER_KILLS = int(os.environ.get("WORKER_KILLS", "25"))
NODE_KILLS = int(os.environ.get("NODE_KILLS", "5"))
WORKERS, RUNS = 4, "/api/v1/workflow-runs"

# The world: a keyed effect is a file that is made once, as a service does that knows its keys. A claimed one is a line more each time
# it is executed, as with a service that does not; what is there can be asked.
WORKER = r'''
import faulthandler, os, random, signal, sys, time
import hapax

faulthandler.register(signal.SIGUSR1, all_threads=True)

def keyed(key):
	with open("keyed/" + key.replace("/", "."), "a"):
		pass
	time.sleep(random.uniform(0, 0.3))
	return key

def claimed(key):
	with open("claimed", "ab", buffering=0) as file:
		file.write(key.encode() + b"\n")
	time.sleep(random.uniform(0, 0.3))
	return key

def find(key):
	with open("claimed", "rb") as file:
		return key if key.encode() in file.read().split(b"\n") else None

@hapax.function("five", version="1")
def five(ctx, input):
	said = [ctx.step("reserve", keyed), ctx.step("charge", claimed, effect="claimed", on_unknown="probe", probe=find)]
	ctx.sleep("a moment", "10ms")
	said += ctx.all([ctx.later.step("pack", keyed), ctx.later.step("bill", keyed)])
	said.append(ctx.step("ship", claimed, effect="claimed", on_unknown="probe", probe=find))
	return {"keys": said}

hapax.work([five], lease="2s", concurrency=8, server=random.choice(sys.argv[1:]))
'''


class World:
	def __init__(self, dir, stores):
		self.dir, self.nodes, self.workers, self.works = dir, [], [], 0
		(dir / "keyed").mkdir()
		(dir / "claimed").touch()
		(dir / "worker.py").write_text(WORKER)
		for n, store in enumerate(stores):
			(dir / str(n)).mkdir()
			self.nodes.append((store, self.serve(n, store, ".".join(["127", *(str(random.randint(1, 254)) for _ in range(3))]) + ":0")))

	def serve(self, n, store, listen):
		return Server(self.dir / str(n), "serve", "--db", store, "--node", f"n{n}", listen=listen)

	def work(self):
		env = {**os.environ, "PYTHONPATH": str(pathlib.Path.cwd() / "clients/python")}
		self.works += 1
		log = self.dir / f"worker-{self.works}.log"
		with open(log, "wb") as out:
			self.workers.append((subprocess.Popen([sys.executable, "worker.py", *(node.url for _, node in self.nodes)],
				cwd=self.dir, env=env, stdout=out, stderr=out), log))

	def kill_worker(self):
		worker, _ = self.workers.pop(0)
		worker.kill()
		worker.wait()
		self.work()

	def kill_node(self, n):
		store, node = self.nodes[n]
		node.process.kill()
		node.__exit__()
		self.nodes[n] = (store, self.serve(n, store, f"{node.host}:{node.port}"))

	def ask(self, method, path, body=None, **more):
		return self.nodes[-1][1].json(method, path, body, **more)

	def __enter__(self):
		for _ in range(WORKERS):
			self.work()
		return self

	def __exit__(self, *_):
		for worker, _ in self.workers:
			worker.kill()
			worker.wait()
		for _, node in self.nodes:
			node.__exit__()


def start_all(world):
	def start(n):
		return world.ask("POST", RUNS, {"definitionId": "five", "input": {"n": n}, "idempotencyKey": f"five-{n}"})
	until(lambda: "run" in start(0), "somebody who polls for it")
	return [start(n)["run"]["id"] for n in range(FUNCTIONS)]


def over(world):
	return len((world.dir / "claimed").read_text().split()) >= 2 * FUNCTIONS


def harm(world):
	"""Kills, until there were enough of them or nothing is left to do; then each node once more, which all workers know that are left."""
	workers = nodes = 0
	began = time.monotonic()
	while (workers < WORKER_KILLS or nodes < NODE_KILLS) and not over(world):
		time.sleep(0.3)
		if workers < WORKER_KILLS:
			world.kill_worker()
			workers += 1
		if nodes < NODE_KILLS and time.monotonic() - began >= nodes + 1:
			world.kill_node(nodes % len(world.nodes))
			nodes += 1
	until(lambda: all("hapax: asks" in log.read_text() for _, log in world.workers), "workers that ask")
	for n in range(len(world.nodes)):
		world.kill_node(n)
	return workers, nodes + len(world.nodes)


def rows_of(world, key):
	store, node = world.nodes[-1]
	for table, id in ("hx_subject", "id"), ("hx_run", "subject"), ("hx_function", "subject"), ("hx_entry", "run"):
		select = f"SELECT * FROM {table} WHERE {id} = (SELECT subject FROM hx_run WHERE run_key = '{key}')"
		if not store.startswith("sqlite:"):
			yield subprocess.run(["psql", "-qXx", store, "-c", select], capture_output=True, text=True).stdout
			continue
		with contextlib.closing(sqlite3.connect(node.dir / store[len("sqlite:"):])) as db:
			db.row_factory = sqlite3.Row
			yield from (f"{table}: {dict(row)}" for row in db.execute(select))


def known_of(world, run):
	"""Of one that does not end: what the engine says, its rows, and where the threads of each worker stand."""
	node = world.nodes[-1][1]
	for verb in ["why"], ["run", "show", "--json"], ["run", "history"]:
		yield subprocess.run([server.HAPAX, *verb, run, "--server", node.url], capture_output=True, text=True).stdout
	yield from rows_of(world, world.ask("GET", f"{RUNS}/{run}")["idempotencyKey"])
	yield from (f"{node.url}: {node.text()[-2000:]}" for _, node in world.nodes)
	for worker, log in world.workers:
		before = log.stat().st_size
		worker.send_signal(signal.SIGUSR1)
		until(lambda: worker.poll() is not None or "Current thread" in log.read_text()[before:], "where its threads are", seconds=10)
		yield f"{log.name}, {'alive' if worker.poll() is None else worker.poll()}: {log.read_text()[-8000:]}"


def judge(world, runs):
	"""Who was lost ten times in a row before it could say anything is held for a person, who is us: it is told how many these were."""
	retried = set()

	def is_over(run):
		it = world.ask("GET", f"{RUNS}/{run}")
		code = it["status"] == "WAITING" and (it["error"] or {}).get("code")
		if code == "LAPSED":
			world.ask("POST", f"{RUNS}/{run}/retry")
			retried.add(run)
		assert code in (False, None, "LAPSED"), f"{run} is held: {it}"
		return it["status"] in ("COMPLETED", "FAILED")

	def shown(run):
		try:
			until(lambda: is_over(run), f"{run} to end", seconds=300)
		except AssertionError:
			print(*known_of(world, run), sep="\n")
			raise
		return world.ask("GET", f"{RUNS}/{run}")
	for run in runs:
		it = shown(run)
		assert it["status"] == "COMPLETED", it
		assert [key.split("/")[1] for key in it["output"]["keys"]] == ["reserve", "charge", "pack", "bill", "ship"], it
	keyed = {path.name for path in (world.dir / "keyed").iterdir()}
	assert len(keyed) == 3 * FUNCTIONS, f"{len(keyed)} keyed effects, not {3 * FUNCTIONS}"
	claimed = collections.Counter((world.dir / "claimed").read_text().split())
	assert len(claimed) == 2 * FUNCTIONS and set(claimed.values()) == {1}, [key for key, n in claimed.items() if n > 1]
	return len(retried)


def each_once(dir, stores):
	began = time.monotonic()
	with World(dir, stores) as world:
		runs = start_all(world)
		assert len(set(runs)) == FUNCTIONS
		killed = harm(world)
		held = judge(world, runs)
	done = subprocess.run([server.HAPAX, "audit", "--db", stores[0]], cwd=dir / "0", capture_output=True)
	assert done.returncode == 0, (done.stdout, done.stderr)
	print(f"# functions_kill: {FUNCTIONS} functions, {len(stores)} nodes; {killed[0]} workers and {killed[1]} nodes killed, {held} held after ten lapses, {time.monotonic() - began:.0f} s")


def test_sqlite(dir):
	each_once(dir, ["sqlite:h.db"])


def test_postgres(dir):
	if os.environ.get("HAPAX_TEST_PG"):
		each_once(dir, [os.environ["HAPAX_TEST_PG"]] * 2)


server.run(globals())
END
