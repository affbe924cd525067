#!/usr/bin/env bash
# Starts that meet while nodes are killed (-9), one on SQLite, two on PostgreSQL. Of a singleton no two runs are under way at once, whoever
# starts it, ends it and tries it again. Of runs that are started with a signal, by several at once, there is one for a key, which has each
# signal once. And of starts with a debounce each key leads to one run. KEYS and KILLS say how many and how often.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import concurrent.futures, itertools, os, threading
import fleet
import server
from fleet import RUNS, Fleet
from server import until, write

KEYS = int(os.environ.get("KEYS", 12))
KILLS = int(os.environ.get("KILLS", 4))
CALLERS = 4
fleet.seed("starts_kill")


def define(dir):
	waits = {"name": "go", "type": "external_event", "event": "go", "save_as": "go"}
	write(dir / "workflows/one.json", {"workflow": "one", "kind": "run", "lease": "1s", "limits": {"singleton": {"by": ".input.of"}},
		"steps": [waits]})
	write(dir / "workflows/heard.json", {"workflow": "heard", "kind": "run", "lease": "1s",
		"steps": [{**waits, "name": f"go{n}", "save_as": f"go{n}"} for n in range(CALLERS)], "output": "[.state.go0, .state.go1, .state.go2, .state.go3]"})
	write(dir / "workflows/last.json", {"workflow": "last", "kind": "run", "lease": "1s",
		"limits": {"debounce": {"by": ".input.of", "for": "100ms", "at_most": "300ms"}}, "steps": [{"name": "rest", "type": "wait", "for": "1ms"}],
		"output": ".input.n"})


def on_each_store(dir):
	for dir, store, nodes_n in fleet.stores(dir):
		define(dir)
		with Fleet(dir, store, nodes_n) as nodes:
			yield nodes
			nodes.audit()


def work_while_killed(nodes, work, group=1):
	"""Eight threads call work(0), work(1) … until the last kill, and the last of a group. How many there were."""
	lock, numbers = threading.Lock(), itertools.count()

	def take():
		with lock:
			n = next(numbers)
			if n % group == 0 and n >= KEYS * group and nodes.kills >= KILLS:
				over.append(n)
			return None if over else n

	def go_on():
		while (n := take()) is not None:
			work(n)

	over = []
	with concurrent.futures.ThreadPoolExecutor(8) as threads:
		futures = [threads.submit(go_on) for _ in range(8)]
		nodes.rage_while(lambda: [future.result() for future in futures], KILLS)
	return over[0]


def ended(nodes, workflow):
	until(lambda: not [run for run in nodes.all(f"{RUNS}?definitionId={workflow}") if run["status"] != "COMPLETED"], "their end", 120)
	return {run["id"]: nodes.ask("GET", f"{RUNS}/{run['id']}") for run in nodes.all(f"{RUNS}?definitionId={workflow}")}


def test_one_of_a_singleton_at_a_time(dir):
	"""One that nobody has sent its event is under way: until then no start makes another."""
	for nodes in on_each_store(dir):
		lock, live = threading.Lock(), {}

		def start(n):
			run = nodes.ask("POST", RUNS, {"definitionId": "one", "input": {"of": n % 3}, "idempotencyKey": f"s-{n}"})["run"]
			if run["idempotencyKey"] != f"s-{n}":
				return
			with lock:
				other = live.setdefault(n % 3, run["id"])
				assert other == run["id"], f"{run['id']} was made beside {other}"
			nodes.ask("GET", f"{RUNS}/{run['id']}")
			with lock:
				del live[n % 3]
			nodes.ask("POST", f"{RUNS}/{run['id']}/events/go", {"id": "e"})

		n = work_while_killed(nodes, start)
		runs = ended(nodes, "one")
		print(f"# starts_kill: {n} starts of 3 singletons made {len(runs)} runs, {nodes.kills} kills", flush=True)
		assert {run["input"]["of"] for run in runs.values()} == {0, 1, 2} and 3 < len(runs) < n


def test_a_run_and_its_signals(dir):
	for nodes in on_each_store(dir):
		told = {}

		def signal(n):  # each comes twice, as from a caller that has lost its answer
			key, caller = n // (2 * CALLERS), n % CALLERS
			answer = nodes.ask("POST", RUNS, {"definitionId": "heard", "input": {}, "idempotencyKey": f"k-{key}",
				"signal": {"event": "go", "id": f"e-{caller}", "data": caller}})
			told.setdefault(key, set()).add(answer["run"]["id"])

		keys = work_while_killed(nodes, signal, 2 * CALLERS) // (2 * CALLERS)
		runs = ended(nodes, "heard")
		assert len(runs) == keys and all(len(ids) == 1 for ids in told.values()), (len(runs), keys)
		for run in runs.values():
			assert sorted(run["output"]) == list(range(CALLERS)), "a signal is missing, or there twice"
		print(f"# starts_kill: {keys} runs that {CALLERS} started and signalled twice each, {nodes.kills} kills", flush=True)


def test_each_key_of_a_debounce_has_a_run(dir):
	for nodes in on_each_store(dir):
		told = {}

		def start(n):
			told[n] = nodes.ask("POST", RUNS, {"definitionId": "last", "input": {"of": n % 2, "n": n}, "idempotencyKey": f"d-{n}"})["run"]["id"]

		work_while_killed(nodes, start)
		runs = ended(nodes, "last")
		for n, id in told.items():
			assert nodes.ask("GET", f"{RUNS}/by-key/last/d-{n}")["id"] == id, f"d-{n} leads to another run than was told"
		for id, run in runs.items():
			n, keys = run["output"], [key for key in told if told[key] == id]
			assert n in keys and {key % 2 for key in keys} == {n % 2}, (n, keys)
		print(f"# starts_kill: {len(told)} starts with a debounce made {len(runs)} runs, {nodes.kills} kills", flush=True)
		assert len(runs) < len(told)


server.run(globals())
END
