"""
For scripts that test functions from outside: a worker that says whatever a test wants, and a server with one on every store.

	from functions import *
	@on_every_store
	def test_something(scene):
		worker = scene.begin()
"""
import itertools
import os

from server import Server, until

RUNS, API = "/api/v1/workflow-runs", "/api/v1/functions"
STORES = ["sqlite:h.db"] + ([os.environ["HAPAX_TEST_PG"]] if os.environ.get("HAPAX_TEST_PG") else [])
serial = (f"{os.getpid()}n{n}" for n in itertools.count())  # names: tests of one file may be processes beside each other, on one database


class Worker:
	def __init__(self, hapax, name, function="f", version="1"):
		self.hapax, self.name, self.function, self.version = hapax, name, function, version
		self.turn, self.seq = None, 0

	def poll(self, wait=0, lease=60000, warm=(), status=200, max=1):
		return self.hapax.json("POST", f"{API}/claim", {"worker": self.name, "functions": [{"name": self.function, "version": self.version}],
			"max": max, "waitMs": wait, "leaseMs": lease, "warm": list(warm)}, status=status)

	def claim(self, lease=60000, warm=()):
		"""Waits for a turn, and takes it."""
		self.turn = until(lambda: self.poll(wait=5000, lease=lease, warm=warm)["turns"], "a turn")[0]
		self.seq = self.turn["seq"]
		return self.turn

	def body(self, *entries, end=None, **more):
		body = {"worker": self.name, "fence": self.turn["fence"], "seq": self.seq, **more}
		if entries:
			body["entries"] = list(entries)
		if end:
			body["end"] = end
		return body

	def send(self, body, status=200):
		path = f"{API}/runs/{self.turn['run']}/journal"
		until(lambda: self.hapax.call("POST", path, body)[0] != 503, "an answer")  # a busy machine: it is repeated, as clients do
		answer = self.hapax.json("POST", path, body, status=status)
		if status == 200:
			self.seq = answer["seq"]
		return answer

	def write(self, *entries, end=None, status=200, **more):
		return self.send(self.body(*entries, end=end, **more), status)

	def refused(self, code, *entries, end=None, **more):
		before = self.journal()
		status = 422 if code in ("BAD_ENTRY", "STEP_OPEN", "NOTHING_TO_WAIT_FOR", "JOURNAL_FULL") else 409
		assert self.write(*entries, end=end, status=status, **more)["code"] == code
		assert self.journal() == before, "a refusal changes nothing"

	def journal(self, after=0):
		return self.hapax.json("GET", f"{API}/runs/{self.turn['run']}/journal?fence={self.turn['fence']}&after={after}", status=200)


def step(name, state="done", n=0, **more):
	return {"kind": "step", "name": name, "n": n, "state": state, **more}


def entry(kind, name, n=0, **more):
	return {"kind": kind, "name": name, "n": n, **more}


def suspended(*awaits, **more):
	return {"state": "suspended", "awaits": [entry(*a) for a in awaits], **more}


class Scene:
	"""A server, and a function of a name of its own that one worker polls for."""

	def __init__(self, dir, store):
		self.hapax = Server(dir, "serve", "--db", store)

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.hapax.__exit__()

	def worker(self, name="w1", function=None, version="1"):
		function = function or f"f{next(serial)}"
		worker = Worker(self.hapax, name, function, version)
		worker.poll()
		return worker

	def start(self, worker, **more):
		return self.hapax.json("POST", RUNS, {"definitionId": worker.function, **more}, status=201)["run"]["id"]

	def begin(self, lease=60000, **more):
		worker = self.worker()
		self.start(worker, **more)
		worker.claim(lease=lease)
		return worker

	def show(self, worker):
		return self.hapax.json("GET", f"{RUNS}/{worker.turn['run']}", status=200)

	def status(self, worker):
		return self.show(worker)["status"]

	def why(self, worker):
		return self.hapax.json("GET", f"{RUNS}/{worker.turn['run']}/why", status=200)["reason"]

	def verb(self, worker, verb, body=None, status=200):
		return self.hapax.json("POST", f"{RUNS}/{worker.turn['run']}/{verb}", body or {}, status=status)

	def attention(self, worker):
		items = self.hapax.json("GET", "/api/v1/attention?limit=500", status=200)["items"]
		return [item["kind"] for item in items if item["id"] == worker.turn["run"]]


def on_every_store(test):
	def each(dir):
		for i, store in enumerate(STORES):
			folder = dir / str(i)
			folder.mkdir()
			with Scene(folder, store) as scene:
				test(scene)
	each.__name__ = test.__name__
	return each
