#!/usr/bin/env bash
# A store that hangs: another program has SQLite's write lock, Redis and PostgreSQL are silent. Whoever asks is told so within
# store_timeout (2s; 4 s is what a busy machine is given here, and 5 s where a batch of somebody else's is under way), nothing is called or forwarded, what was executed is given as
# `unstored`, reads go on beside the lock, /readyz says so within that time and then at once, a stop does not wait for it, and
# afterwards everything goes on by itself. And what /readyz and connections are while a stop is announced (drain.notice).
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os, re, signal, socket, sqlite3, subprocess, threading, time
import server
from server import Server, Service, until, write

BOUND, BOUND_BATCH, AT_ONCE, STOP = 4, 5, 1, 10  # seconds


def timed(function, bound):
	began = time.monotonic()
	answer = function()
	took = time.monotonic() - began
	assert took < bound, f"{took:.2f} s, and at most {bound} s were to be waited for"
	return answer, took


def at_once(function):
	"""A busy machine may be late for once; what waits for the store is late each time."""

	def is_told():
		began = time.monotonic()
		return function() and time.monotonic() - began < AT_ONCE
	until(is_told, f"an answer within {AT_ONCE} s")


class Lock:
	"""Of another program: the write lock of a SQLite file."""

	def __init__(self, path):
		self.db = sqlite3.connect(path, isolation_level=None, timeout=20)
		self.db.execute("BEGIN IMMEDIATE")

	def release(self):
		self.db.execute("ROLLBACK")
		self.db.close()


class Admin:
	"""The second address of a gate."""

	def __init__(self, gate):
		self.host, self.port = "127.0.0.1", int(re.search(r'"admin":"127.0.0.1:(\d+)"', gate.text())[1])

	open, raw, call = Server.open, Server.raw, Server.call


def keyed(hapax, path, key):
	return hapax.call("POST", path, {}, [("Idempotency-Key", key), ("Content-Type", "application/json")])


def gate(dir, service, store):
	write(dir / "gate.json", {"upstream": service.url, "store": store, "admin": "127.0.0.1:0"})
	hapax = Server(dir, "gate", "--config", "gate.json")
	return hapax, Admin(hapax)


def check_gate(dir, store, hang, heal, bound=BOUND):
	"""Everything at a gate whose store hangs. hang() and heal() are the test's."""
	with Service() as service:
		hapax, admin = gate(dir, service, store)
		salt = str(os.getpid())
		with hapax:
			assert admin.call("GET", "/readyz")[0] == 200
			assert keyed(hapax, "/pay", "old" + salt)[0] == 200
			service.hold.clear()
			slow = []
			thread = threading.Thread(target=lambda: slow.append(keyed(hapax, "/slow", "slow" + salt)))
			thread.start()
			service.await_calls("/slow")
			hang()
			until(lambda: not slow, "a request under way")
			service.hold.set()
			timed(lambda: thread.join(60), bound)
			assert slow[0][0] == 200 and "Idempotency-Status: unstored" in slow[0][1], slow
			calls = len(service.calls)
			time_of = []
			for key in ("new", "newer"):
				(status, _, body), took = timed(lambda: keyed(hapax, "/pay", key + salt), bound)
				assert status == 503 and b"STORE_UNAVAILABLE" in body, body
				time_of.append(took)
			(status, _, body), _ = timed(lambda: keyed(hapax, "/pay", "old" + salt), bound)
			assert status in (200, 503), body  # what is recalled is replayed
			assert len(service.calls) == calls, "something was forwarded"
			timed(lambda: admin.call("GET", "/readyz")[0] == 503 or 1 / 0, bound)
			at_once(lambda: admin.call("GET", "/readyz")[0] == 503 or 1 / 0)
			print(f"# {store.split(':')[0]} hangs: 503 after {', '.join(f'{t:.2f} s' for t in time_of)}")
			heal()
			until(lambda: admin.call("GET", "/readyz")[0] == 200, "a store that is back")
			until(lambda: keyed(hapax, "/pay", "new" + salt)[0] == 200, "a key that is taken again")
			until(lambda: "Idempotency-Status: replayed" in keyed(hapax, "/slow", "slow" + salt)[1], "what was stored after all")
			assert len([c for c in service.calls if c[0] == "/slow"]) == 1
			calls = len(service.calls)
			hang()
			(status, _, body), first = timed(lambda: keyed(hapax, "/pay", "first" + salt), bound)  # nobody knew yet
			assert status == 503 and b"STORE_UNAVAILABLE" in body and len(service.calls) == calls, body
			_, end = timed(hapax.stop, STOP)
			heal()
			print(f"# {store.split(':')[0]} hangs: the first is 503 after {first:.2f} s, a stop takes {end:.2f} s")


def test_gate_whose_file_another_program_has_locked(dir):
	locks = []
	check_gate(dir, "sqlite:gate.db", lambda: locks.append(Lock(dir / "gate.db")), lambda: locks.pop().release())


def test_gate_whose_redis_is_silent(dir):
	def ctl(word):
		subprocess.run([os.environ["HAPAX_TEST_REDIS_CTL"], word], check=True)

	try:
		check_gate(dir, os.environ["HAPAX_TEST_REDIS"], lambda: ctl("pause"), lambda: ctl("continue"))
	finally:
		ctl("continue")


class Silence:
	"""Passes bytes on to a server, or keeps them back: what a peer that has died without a word looks like."""

	def __init__(self, port):
		self.target, self.silent = port, False
		self.listener = socket.create_server(("127.0.0.1", 0))
		self.port = self.listener.getsockname()[1]
		threading.Thread(target=self.accept, daemon=True).start()

	def accept(self):
		while True:
			client = self.listener.accept()[0]
			remote = socket.create_connection(("127.0.0.1", self.target))
			for a, b in ((client, remote), (remote, client)):
				threading.Thread(target=self.pass_on, args=(a, b), daemon=True).start()

	def pass_on(self, a, b):
		try:
			while data := a.recv(65536):
				until(lambda: not self.silent, "words", 600)
				b.sendall(data)
			b.shutdown(socket.SHUT_WR)
		except (OSError, AssertionError):
			pass

	def say_nothing(self):
		self.silent = True

	def go_on(self):
		self.silent = False


def postgres(dir):
	"""A database of its own, behind a Silence."""
	url, port = os.environ["HAPAX_TEST_PG"], os.environ["HAPAX_TEST_PG_PORT"]
	name = f"hangs_{os.getpid()}_{dir.name[-4:]}".lower()
	subprocess.run(["psql", "-q", url, "-c", f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'"], check=True)
	silence = Silence(int(port))
	return silence, url.rpartition("/")[0].replace(f":{port}", f":{silence.port}") + "/" + name


def test_gate_whose_postgres_is_silent(dir):
	silence, url = postgres(dir)
	check_gate(dir, url, silence.say_nothing, silence.go_on, BOUND_BATCH)


BILLING = {
	"workflow": "billing", "kind": "entity", "meta": {"module": "billing"},
	"status_types": ["draft", "closing", "closed"], "initial_status": "draft",
	"steps": [{"step_id": 1, "step_key": "close", "status": "draft", "claim_state": ["closing", "draft"],
		"successful_state": "closed", "action": "Close"}]}


def check_engine(dir, db, hang, heal, reads, bound=BOUND):
	with Service() as service:
		write(dir / "flows" / "billing.json",
			{**BILLING, "actions": {"Close": {"kind": "http", "url": service.url + "/close", "effect": "claimed"}}})
		write(dir / "c.json", {"modules": {"billing": {"janitor": {}}}})
		with Server(dir, "serve", "--db", db, "--workflows", "flows", "--config", "c.json") as hapax:
			at = "/api/v1/entities/billing"
			for id in "ab":
				hapax.json("POST", at, {"id": id}, status=201)
			assert hapax.call("GET", "/readyz")[0] == 200
			hang()
			timed(lambda: hapax.call("GET", "/readyz")[0] == 503 or 1 / 0, bound)
			at_once(lambda: hapax.call("GET", "/readyz")[0] == 503 or 1 / 0)
			for headers in ((), [("Idempotency-Key", "k")]):
				(status, _, body), took = timed(lambda: hapax.call("POST", at + "/a/steps/close", {}, headers), bound)
				assert status == 503 and b"STORE_UNAVAILABLE" in body, body
			print(f"# {db.split(':')[0]} hangs: a claimed step is 503 after {took:.2f} s")
			for path in (at + "/a", at):
				if reads:
					at_once(lambda: hapax.call("GET", path)[0] == 200 or 1 / 0)
				else:
					timed(lambda: hapax.call("GET", path)[0] == 503 or 1 / 0, bound)
			assert not service.calls, "an action was called"
			heal()
			until(lambda: hapax.call("GET", "/readyz")[0] == 200, "a store that is back")
			until(lambda: hapax.json("GET", at + "/a").get("status") == "draft", "a read")
			hapax.json("POST", at + "/a/steps/close", {}, status=200)
			assert len(service.calls) == 1
			hang()
			_, end = timed(hapax.stop, STOP)
			heal()
			print(f"# {db.split(':')[0]} hangs: a stop takes {end:.2f} s")


def test_engine_whose_file_another_program_has_locked(dir):
	locks = []
	check_engine(dir, "sqlite:h.db", lambda: locks.append(Lock(dir / "h.db")), lambda: locks.pop().release(), reads=True)


def test_engine_whose_postgres_is_silent(dir):
	silence, url = postgres(dir)
	check_engine(dir, url, silence.say_nothing, silence.go_on, reads=False, bound=BOUND_BATCH)


ENDLESS = "INSERT INTO note WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"


def test_a_lane_that_does_not_move_is_told(dir):
	write(dir / "flows" / "w.json", {"workflow": "w", "kind": "run",
		"actions": {"a": {"kind": "sql", "timeout": "6s", "statements": [{"name": "it", "sql": ENDLESS}]}},
		"steps": [{"name": "s", "type": "task", "action": "a", "input": "{}"}]})
	with sqlite3.connect(dir / "h.db") as db:
		db.execute("CREATE TABLE note (n int)")
	with Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows") as hapax:
		assert hapax.call("GET", "/readyz")[0] == 200
		hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "w"}, status=201)
		words = lambda: timed(lambda: hapax.call("GET", "/readyz"), BOUND)[0][2]
		until(lambda: b"a lane does not move" in words(), "a lane that stands still")
		at_once(lambda: b"a lane does not move" in words())
		assert "a lane does not move" in hapax.text()
		until(lambda: hapax.call("GET", "/readyz")[0] == 200, "a lane that moves again")
		hapax.await_log("the store is back")


def test_what_an_action_has_answered_is_not_given_up(dir):
	"""Longer than any budget for what is yet to be done: it has been charged, and that is to be recorded."""
	with Service() as service:
		write(dir / "flows" / "billing.json",
			{**BILLING, "actions": {"Close": {"kind": "http", "url": service.url + "/close", "effect": "claimed"}}})
		write(dir / "c.json", {"modules": {"billing": {"janitor": {}}}})
		with Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows", "--config", "c.json") as hapax:
			at, answers = "/api/v1/entities/billing", []
			hapax.json("POST", at, {"id": "a"}, status=201)
			service.hold.clear()
			caller = threading.Thread(target=lambda: answers.append(hapax.call("POST", at + "/a/steps/close", {})))
			caller.start()
			until(lambda: service.calls, "the call")
			lock = Lock(dir / "h.db")
			service.hold.set()
			until(lambda: hapax.call("GET", "/readyz")[0] == 503, "a store that is away")
			end = time.monotonic() + 2.5  # past the budget of a caller
			until(lambda: time.monotonic() > end, "the time to pass")
			assert not answers, answers
			lock.release()
			caller.join(60)
			assert answers[0][0] == 200, answers
			assert hapax.json("GET", at + "/a")["status"] == "closed" and len(service.calls) == 1


def test_what_was_given_up_is_never_done(dir):
	with Server(dir, "serve", "--db", "sqlite:h.db") as hapax:
		hapax.json("POST", "/api/v1/accounts", {"id": "a", "balance": 0}, status=201)
		lock = Lock(dir / "h.db")
		for key in "xyz":
			assert hapax.call("POST", "/api/v1/accounts/a/credit", {"amount": 1, "key": key})[0] == 503
		lock.release()
		hapax.json("POST", "/api/v1/accounts/a/credit", {"amount": 10, "key": "later"})
		assert hapax.json("GET", "/api/v1/accounts/a")["balance"] == 10
		numbers = dict(line.rsplit(" ", 1) for line in hapax.call("GET", "/metrics")[2].decode().splitlines() if line[0] != "#")
		assert int(numbers["hapax_units_given_up_total"]) >= 3, numbers["hapax_units_given_up_total"]


def test_a_stop_is_announced(dir):
	write(dir / "flows" / "w.json", {"workflow": "w", "kind": "run", "actions": {"a": {"kind": "noop"}},
		"steps": [{"name": "s", "type": "task", "action": "a"}]})
	write(dir / "c.json", {"drain": {"notice": "60s"}})
	with Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows", "--config", "c.json") as hapax:
		hapax.process.send_signal(signal.SIGTERM)
		until(lambda: hapax.call("GET", "/readyz")[0] == 503, "a stop that is announced")
		assert "Retry-After: 1" in hapax.call("GET", "/readyz")[1], "every 503 says when to ask again"
		run = hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "w"}, status=201)["run"]["id"]
		assert hapax.json("GET", f"/api/v1/workflow-runs/{run}")["status"] == "PENDING"
		timed(hapax.stop, STOP)  # a second signal does not wait
		assert "a stop is announced" in hapax.text()


def test_a_gate_announces_its_stop(dir):
	with Service() as service:
		write(dir / "gate.json", {"upstream": service.url, "store": "memory:", "admin": "127.0.0.1:0", "drain": {"notice": "60s"}})
		with Server(dir, "gate", "--config", "gate.json") as hapax:
			admin = Admin(hapax)
			hapax.process.send_signal(signal.SIGTERM)
			until(lambda: admin.call("GET", "/readyz")[0] == 503, "a stop that is announced")
			assert "Retry-After: 1" in admin.call("GET", "/readyz")[1]
			assert keyed(hapax, "/pay", "k")[0] == 200
			timed(hapax.stop, STOP)


server.run(globals())
END
