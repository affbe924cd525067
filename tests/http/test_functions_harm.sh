#!/usr/bin/env bash
# Functions whose workers mean harm, or have very much to do at once: the server bears it, and others do not notice.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import concurrent.futures, json, os, random, socket, struct, subprocess
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


@on_every_store
def test_what_one_call_starts_and_drops_is_cancelled(hapax):
	Worker(hapax, "kid").claim()
	w = Worker(hapax, "f").begin()
	w.write(entry("child", "c", workflow="kid"), entry("drop", "c"))
	w.write(entry("child", "d", workflow="kid"), end={"state": "completed"})
	kids = lambda: [run["status"] for run in hapax.json("GET", f"{RUNS}?definitionId=kid", status=200)["items"]]
	until(lambda: kids() == ["CANCELLED"] * 2, "both to be cancelled")


@on_every_store
def test_a_turn_for_who_has_gone_is_the_next_ones(hapax):
	w = Worker(hapax, "f")
	w.claim()
	body = json.dumps({"worker": "gone", "functions": w.functions, "waitMs": 20000, "max": 1, "leaseMs": 60000})
	request = f"POST {API}/claim HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
	for n in range(12):
		start = lambda: hapax.json("POST", RUNS, {"definitionId": "f", "idempotencyKey": str(n)}, status=201)
		due = n % 2 and start()  # a turn is there when it is asked for, or comes just when the worker goes
		gone = socket.create_connection((hapax.host, hapax.port))
		gone.sendall(request)
		if n % 3 == 0:
			gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
		gone.close()
		run = due or start()
		turns = w.claim(wait=20000)
		assert [(t["run"], t["attempt"]) for t in turns] == [(run["run"]["id"], 1)], (n, turns)
		w.turn, w.run, w.seq = turns[0], turns[0]["run"], turns[0]["seq"]
		w.write(end={"state": "completed"})


@on_every_store
def test_texts_and_numbers_at_their_limits(hapax):
	w = Worker(hapax, "f").begin()
	path = f"{API}/runs/{w.run}/journal"
	texts = [f'"{text}"' for text in ("\\ud800", "x\\udc00", "a\\u0000", "\\u007f", "\\ufffe")]
	values = [entry("value", "v", output=0), step("s", error={"message": 0}, state="failed"), entry("attribute", "a", value=0), entry("event", "e", event=0),
		entry("child", "c", workflow="none", input={"x": 0}), entry("child", "d", workflow=0)]
	for text in texts:
		bodies = [json.dumps({"worker": "w", "fence": w.turn["fence"], "seq": w.seq, "entries": [value]}).replace(": 0}", f": {text}}}") for value in values]
		for body in bodies + [f'{{"worker": {text}, "functions": [{{"name": {text}, "version": {text}}}]}}']:
			status, _, answer = hapax.call("POST", path if "fence" in body else f"{API}/claim", body.encode())
			assert status in (200, 400, 409, 422), (body, status, answer)
			w.seq = json.loads(answer).get("seq", w.seq)
	for fence in (1, 2**63 - 1, 2**63, 0, -1, 1.5, "1", None):
		for seq in (2**63 - 1, 2**63, -1, 0.5, "0", None):
			status, _, answer = hapax.call("POST", path, {"worker": "w", "fence": fence, "seq": seq, "entries": [entry("value", "n")]})
			assert status in (400, 409, 422), (fence, seq, status, answer)
	for large in (entry("attribute", "a", value="x" * 2000000), entry("event", "e", event="x" * 2000000), step("s", output="x" * 2000000)):
		assert w.write(large, status=413)["code"] == "TOO_LARGE", large["kind"]
	w.write(entry("sleep", "long", until="9999-12-31T23:59:59Z"), entry("sleep", "longer", forMs=366 * 100 * 86400000), end={"state": "completed"})
	assert w.status() == "COMPLETED"


def at_once(nodes, calls):
	random.shuffle(calls)
	with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
		return list(pool.map(lambda n: (calls[n], nodes[n % 2].call(*calls[n])), range(len(calls))))


def race_on_two(nodes, w):
	"""The same bytes on both nodes, others that name the same seq, and people: one call is taken, and it is told to whoever has sent it."""
	path, at = f"{API}/runs/{w.run}/journal", {"worker": "w", "fence": w.turn["fence"], "seq": w.seq}
	same = json.dumps({**at, "entries": [step("a", "begun"), entry("event", "e", event="go")]}).encode()
	others = [json.dumps({**at, "entries": [step("b", output=n)]}).encode() for n in range(3)]
	people = [("POST", f"{RUNS}/{w.run}/{verb}", {}) for verb in ("events/go", "pause", "resume")]
	answers = at_once(nodes, [("POST", path, same)] * 4 + [("POST", path, other) for other in others] + people)
	journal = w.hapax.json("GET", f"{path}?fence={w.turn['fence']}", status=200)
	names = {entry["name"] for entry in journal["journal"]}
	assert len({entry["seq"] for entry in journal["journal"]}) == len(journal["journal"]), journal
	assert not {"a", "b"} <= names, "the same seq has meant two things"
	for (_, _, sent), (status, _, text) in answers:
		assert sent == {} or status in (200, 409, 503), (status, text)
		assert status != 200 or sent == {} or ("a" if sent == same else "b") in names, "a call is told that was not taken"
	return names, journal["seq"]


def test_two_nodes_take_one_call(dir):
	for store in STORES[1:]:
		(dir / "b").mkdir()
		with Server(dir, "serve", "--db", store, "--node", "a") as a, Server(dir / "b", "serve", "--db", store, "--node", "b") as b:
			for _ in range(5):
				w = Worker(a, "f").begin()
				names, w.seq = race_on_two([a, b], w)
				a.call("POST", f"{RUNS}/{w.run}/resume", {})
				b.call("POST", f"{RUNS}/{w.run}/cancel", {})
				w.write(*[step("a")] * ("a" in names), end={"state": "undone"})
				assert w.status() == "CANCELLED"


server.run(globals())
END
