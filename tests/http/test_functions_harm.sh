#!/usr/bin/env bash
# Functions whose workers mean harm, or have very much to do at once: the server bears it, and others do not notice.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os, subprocess
import server
from server import Server, until

RUNS, API = "/api/v1/workflow-runs", "/api/v1/functions"
STORES = ["sqlite:h.db"] + ([os.environ["HAPAX_TEST_PG"]] if os.environ.get("HAPAX_TEST_PG") else [])


class Worker:
	def __init__(self, hapax, *functions):
		self.hapax, self.functions = hapax, [{"name": f, "version": "1"} for f in functions]

	def claim(self, wait=0, max=1, lease=60000):
		return self.hapax.json("POST", f"{API}/claim", {"worker": "w", "functions": self.functions, "waitMs": wait, "max": max, "leaseMs": lease}, status=200)["turns"]

	def begin(self, **more):
		"""A run of the first function, and its turn."""
		self.claim()
		self.hapax.json("POST", RUNS, {"definitionId": self.functions[0]["name"], **more}, status=201)
		return self.take()

	def take(self):
		self.turn = until(lambda: self.claim(wait=5000), "a turn")[0]
		self.run, self.seq = self.turn["run"], self.turn["seq"]
		return self

	def write(self, *entries, end=None, status=200):
		body = {"worker": "w", "fence": self.turn["fence"], "seq": self.seq, **({"entries": entries} if entries else {}), **({"end": end} if end else {})}
		answer = self.hapax.json("POST", f"{API}/runs/{self.run}/journal", body, status=status)
		self.seq = answer.get("seq", self.seq)
		return answer

	def verb(self, verb, body=None, status=200):
		return self.hapax.json("POST", f"{RUNS}/{self.run}/{verb}", body or {}, status=status)

	def status(self):
		return self.hapax.json("GET", f"{RUNS}/{self.run}", status=200)["status"]


def entry(kind, name, n=0, **more):
	return {"kind": kind, "name": name, "n": n, **more}


def step(name, state="done", kind="step", **more):
	return entry(kind, name, state=state, **more)


def on_every_store(test):
	def each(dir):
		for i, store in enumerate(STORES):
			folder = dir / str(i)
			folder.mkdir()
			with Server(folder, "serve", "--db", store) as hapax:
				test(hapax)
	each.__name__ = test.__name__
	return each


@on_every_store
def test_a_call_starts_children_of_many_functions(hapax):
	w, kids = Worker(hapax, "parent").begin(), Worker(hapax, *[f"kid{n}" for n in range(40)])
	kids.claim()
	w.write(*[entry("child", f"c{n}", workflow=f"kid{n % 40}") for n in range(120)])
	turns = []
	until(lambda: turns.extend(kids.claim(max=12)) or len(turns) == 120, "a turn for each")
	assert len({t["run"] for t in turns}) == 120 and {t["function"] for t in turns} == {f"kid{n}" for n in range(40)}


@on_every_store
def test_many_events_go_back_at_once(hapax):
	w, many = Worker(hapax, "f").begin(), range(60)
	w.write(*[entry("event", "e", n, event="go") for n in many])
	for n in many:
		w.verb("events/go", {"id": str(n), "data": n}, status=202)
	w.write(*[entry("drop", "e", n) for n in many])  # it has seen none of them come
	told = w.write(*[entry("event", "e", n + 60, event="go") for n in many])["completed"]
	until(lambda: told.extend(w.write()["completed"]) or len(told) == 60, "all of them")
	assert sorted(e["output"] for e in told) == list(many), told


@on_every_store
def test_what_nobody_compensates_is_no_compensation(hapax):
	w = Worker(hapax, "f").begin()
	w.write(step("a"), entry("compensate", "a"), step("b"))
	w.verb("cancel", status=202)
	w.write()
	w.write(step("b", kind="undo"), end={"state": "released"})
	assert w.status() == "CANCELLING", "a is not undone yet"
	w.take().write(step("a", kind="undo"), end={"state": "undone"})
	assert w.status() == "CANCELLED"


@on_every_store
def test_a_cancelled_run_does_not_end_in_doubt(hapax):
	w = Worker(hapax, "f").begin()
	w.write(step("a", "begun"), entry("compensate", "a"))
	w.verb("cancel", status=202)
	w.write()
	w.write(step("a", "unknown", error={"message": "no answer"}), end={"state": "undone"})
	assert w.status() == "CANCELLING" and w.claim() == []
	assert [i["kind"] for i in hapax.json("GET", "/api/v1/attention", status=200)["items"] if i["id"] == w.run] == ["unknown_step"]
	w.verb("steps/a/resolve", {"outcome": "done"})
	w.take().write(step("a", kind="undo"), end={"state": "undone"})
	assert w.status() == "CANCELLED"
	w = Worker(hapax, "f").begin()
	w.write(step("a", "begun"))
	w.verb("cancel", status=202)
	w.write()
	w.write(step("a", "unknown"), end={"state": "undone"})
	assert w.verb("steps/a/resolve", {"outcome": "done"})["status"] == "CANCELLED", "nothing is left to undo"


@on_every_store
def test_the_step_that_has_failed_has_a_name_that_a_step_can_have(hapax):
	w = Worker(hapax, "f").begin()
	w.write(step("a", "failed"), step("b"), entry("step", "b", 1, state="failed"))
	for bad in ({"name": "a\0b"}, {"name": ""}, {"name": "a", "n": "x" * 1000}, {"name": "a", "n": -1}, {"n": 1}, "a\0", 5):
		assert w.write(end={"state": "failed", "step": bad}, status=422)["code"] == "BAD_ENTRY", bad
	w.write(end={"state": "failed", "step": {"name": "b", "n": 1}, "error": {"message": "no"}})
	assert hapax.json("GET", f"{RUNS}/{w.run}")["error"]["step"] == "b#1"
	for verb in ("approvals/a%00b", "steps/a%00b/resolve", "events/a%00b"):
		status, _, text = hapax.call("POST", f"{RUNS}/{w.run}/{verb}", {"decision": "approve"} if verb[0] == "a" else {"outcome": "done"} if verb[0] == "s" else {})
		assert 400 <= status < 500, (verb, status, text)


def test_who_polls_for_what_is_known_waits_for_nobody(dir):
	for store in STORES[1:]:
		with Server(dir, "serve", "--db", store) as hapax:
			w = Worker(hapax, "f")
			w.claim()
			with subprocess.Popen(["psql", "-qAt", store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
				print("BEGIN; SELECT count(*) FROM (SELECT name FROM hx_function_poll FOR UPDATE) AS held;", file=other.stdin, flush=True)
				assert int(other.stdout.readline()) > 0
				assert w.claim() == []
				other.stdin.close()


def test_names_that_workers_make_up_are_no_labels(dir):
	with Server(dir, "serve") as hapax:
		for name in ("x" * 200, "x" * 199 + "y", "(others)", "short"):
			for _ in range(2):
				Worker(hapax, name).begin().write(end={"state": "completed"})
		lines = [line for line in hapax.call("GET", "/metrics")[2].decode().splitlines() if line.startswith("hapax_runs_total{")]
		series = [line.rsplit(" ", 1)[0] for line in lines]
		assert len(series) == len(set(series)), "a series comes once"
		assert 'hapax_runs_total{workflow="(functions)",status="COMPLETED"} 8' in lines, lines
		assert not any("short" in line for line in lines), "names of a workspace's own are not for others"


server.run(globals())
END
