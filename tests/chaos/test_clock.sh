#!/usr/bin/env bash
# The clock of the machine is set while real processes serve (libfaketime sets it for one of them; the monotonic clock stays what it
# is). Set back by a day: janitors, leases and waits go on as if nothing had happened. Set ahead by 25 hours, for a moment: nothing
# expires, no claim is taken from whoever lives, and it is told.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import glob, json, os, pathlib, signal, sqlite3, subprocess, threading
import server
from server import Server, Service, until, write

DAY = 86400
SOON = 25  # seconds in which something that takes one or two has happened, on a busy machine too

(LIBRARY,) = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")[:1] or [None]


class Clock:
	"""Of the processes that get its environment."""

	def __init__(self, dir):
		self.file = pathlib.Path(dir) / "clock"
		self.env = {"LD_PRELOAD": LIBRARY, "FAKETIME_TIMESTAMP_FILE": str(self.file), "FAKETIME_NO_CACHE": "1",
			"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
			"FAKETIME_FORCE_MONOTONIC_FIX": "0"}  # by which waits of threads would end at once, all the time
		self.set(0)

	def set(self, seconds):
		new = self.file.with_suffix(".new")
		new.write_text(f"{seconds:+d}\n")
		new.rename(self.file)


def metric(hapax, name, path="/metrics"):
	_, _, body = hapax.call("GET", path)
	(line,) = [l for l in body.decode().splitlines() if l.startswith(name + " ")]
	return float(line.split()[1])


def billing(service, janitor):
	return {
		"workflow": "billing", "kind": "entity", "meta": {"module": "billing"},
		"status_types": ["open", "busy", "done"], "initial_status": "open",
		"actions": {"Act": {"kind": "http", "url": service.url + "/act", "effect": "claimed", "timeout": "60s"}},
		"steps": [{"step_id": 1, "step_key": "act", "status": "open", "claim_state": ["busy", "open"],
			"successful_state": "done", "action": "Act"}],
	}, {"modules": {"billing": {"janitor": janitor}}}


def shop(dir, service, janitor, clock=None, store="sqlite:h.db", node="one"):
	definition, config = billing(service, janitor)
	write(dir / "workflows/billing.json", definition)
	write(dir / "hapax.json", config)
	return Server(dir, "serve", "--db", store, "--workflows", "workflows", "--config", "hapax.json", "--node", node,
		env=clock.env if clock else None)


def status(hapax, id):
	return hapax.json("GET", f"/api/v1/entities/billing/{id}", status=200)["status"]


def fire(hapax, service, id):
	"""In a thread of its own; returns when the action has begun. What was answered is put into the list."""
	before, answers = len(service.calls), []
	hapax.json("POST", "/api/v1/entities/billing", {"id": id}, status=201)
	thread = threading.Thread(target=lambda: answers.append(hapax.call("POST", f"/api/v1/entities/billing/{id}/steps/act", {})))
	thread.start()
	service.await_calls("/act", before + 1)
	return thread, answers


def kill(hapax):
	hapax.process.kill()
	hapax.process.wait()


def postgres(dir):
	name = f"clock_{os.getpid()}"
	subprocess.run(["psql", "-qX", os.environ["HAPAX_TEST_PG"], "-c", f"DROP SCHEMA IF EXISTS {name} CASCADE",
		"-c", f"CREATE SCHEMA {name}"], check=True, env={**os.environ, "PGOPTIONS": "-c client_min_messages=error"})
	mark = "&" if "?" in os.environ["HAPAX_TEST_PG"] else "?"
	return f"{os.environ['HAPAX_TEST_PG']}{mark}options=-csearch_path%3D{name}"


# A node is lost in the middle of an action. The one that is there finds the claim in its time, whatever its clock shows.
def test_set_back_on_postgres(dir):
	store, clock, janitor = postgres(dir), Clock(dir), {"every": "300ms", "stuck_after": "1s"}
	with Service() as service, shop(dir, service, janitor, clock, store, "stays") as stays:
		(dir / "other").mkdir()
		with shop(dir / "other", service, janitor, None, store, "goes") as goes:
			service.hold.clear()
			clock.set(-DAY)
			until(lambda: metric(stays, "hapax_clock_doubted") == 1, "the step to be seen")
			fire(goes, service, "a")
			kill(goes)
		until(lambda: status(stays, "a") == "open", "the janitor, with the clock set back", SOON)
		until(lambda: metric(stays, "hapax_nodes_live") == 1, "a heartbeat behind the other's last", SOON)
		clock.set(0)
		until(lambda: metric(stays, "hapax_clock_doubted") == 0, "the clock to be back")
		assert "could not renew its lease" not in stays.text()


# The clock of the server itself, by the one function through which every statement reads it. Retention looks four times a second.
def test_the_servers_own_clock_on_postgres(dir):
	store = postgres(dir)
	write(dir / "workflows/errand.json", {"workflow": "errand", "kind": "run", "actions": {"Nothing": {"kind": "noop"}},
		"steps": [{"name": "a", "type": "task", "action": "Nothing"}]})
	write(dir / "hapax.json", {"retention": {"jobs": "1h"}})

	def sql(text):
		return subprocess.run(["psql", "-qAtX", store, "-c", text], check=True, stdout=subprocess.PIPE, text=True).stdout

	def ahead(seconds):
		sql("CREATE OR REPLACE FUNCTION hx_now_ms() RETURNS bigint LANGUAGE sql VOLATILE PARALLEL SAFE"
			f" AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint + {seconds * 1000} $$")

	with Server(dir, "serve", "--db", store, "--workflows", "workflows", "--config", "hapax.json") as hapax:
		until(lambda: metric(hapax, "hapax_nodes_live") == 1, "the first heartbeat", SOON)
		run = hapax.json("POST", "/api/v1/workflow-runs?wait=20s", {"definitionId": "errand"})["run"]["id"]
		assert metric(hapax, "hapax_store_clock_doubted") == 0
		ahead(DAY)
		until(lambda: metric(hapax, "hapax_store_clock_doubted") == 1, "the jump to be seen", SOON)
		assert "the clock of the store's machine has jumped" in hapax.text()
		assert b"the store's machine has jumped" in hapax.call("GET", "/readyz")[2]
		# From now on what is kept for a second would be gone at the next look; a heartbeat comes after ten of them.
		write(dir / "hapax.json", {"retention": {"runs": "1s"}})
		hapax.process.send_signal(signal.SIGHUP)
		until(lambda: "the configuration was read again" in hapax.text(), "the reload", SOON)
		beats = set()
		until(lambda: beats.add(sql("SELECT until FROM hx_node")) or len(beats) > 3, "three heartbeats", SOON)
		assert hapax.json("GET", f"/api/v1/workflow-runs/{run}", status=200)["status"] == "COMPLETED"
		ahead(0)
		until(lambda: metric(hapax, "hapax_store_clock_doubted") == 0, "it to be back", SOON)
		assert "the clock of the store's machine is back where it was" in hapax.text()
		until(lambda: metric(hapax, "hapax_runs_expired_total") == 1, "retention to go on", SOON)


def test_set_back_on_sqlite(dir):
	clock, janitor = Clock(dir), {"every": "300ms", "stuck_after": "2s"}
	with Service() as service:
		with shop(dir, service, janitor, clock) as hapax:
			service.hold.clear()
			fire(hapax, service, "a")
			kill(hapax)
		with shop(dir, service, janitor, clock) as hapax:
			clock.set(-DAY)
			until(lambda: metric(hapax, "hapax_clock_doubted") == 1, "the step to be seen")
			until(lambda: status(hapax, "a") == "open", "the janitor, with the clock set back", SOON)
			assert metric(hapax, "hapax_clock_jumps_total") == 1
			assert hapax.call("GET", "/readyz")[::2] == (200, b"ready; this machine's clock has jumped: expiry waits\n")
			assert "the clock of this machine has jumped" in hapax.text()
			# A wait is as long as it was to be.
			status_, _, body = hapax.call("POST", "/api/v1/jobs/claim", {"owner": "w", "queues": ["q"], "waitMs": 300})
			assert status_ == 200 and json.loads(body) == {"jobs": []}, body


# Nobody serves while it is set back: the lease of whoever is dead is not longer for that.
def test_set_back_between_two_starts(dir):
	clock, janitor = Clock(dir), {"every": "300ms", "stuck_after": "2s"}
	with Service() as service:
		with shop(dir, service, janitor, clock) as hapax:
			service.hold.clear()
			fire(hapax, service, "a")
			kill(hapax)
		clock.set(-DAY)
		with shop(dir, service, janitor, clock) as hapax:
			until(lambda: status(hapax, "a") == "open", "the janitor of a start with the clock set back", SOON)
			hapax.await_log("was set back since the store was last in use")
			assert metric(hapax, "hapax_clock_doubted") == 0


def test_set_ahead_takes_no_claim(dir):
	clock = Clock(dir)
	with Service() as service, shop(dir, service, {"external": True, "stuck_after": "60s"}, clock) as hapax:
		service.hold.clear()
		thread, answers = fire(hapax, service, "a")
		sweep = lambda: hapax.json("POST", "/api/v1/modules/billing/sweep", {}, status=200)
		clock.set(25 * 3600)
		until(lambda: metric(hapax, "hapax_clock_doubted") == 1, "the jump to be seen")
		assert sweep()["reverted"] == 0, "a claim was taken from its owner"
		assert status(hapax, "a") == "busy"
		clock.set(0)
		until(lambda: metric(hapax, "hapax_clock_doubted") == 0, "the clock to be back")
		assert sweep()["reverted"] == 0
		service.hold.set()
		thread.join()
		assert answers[0][0] == 200 and status(hapax, "a") == "done", answers
		hapax.await_log("is back where it was")


def records(dir):
	with sqlite3.connect(dir / "g.db", timeout=20) as db:
		return db.execute("SELECT count(*) FROM hx_gate_record").fetchone()[0]


def looked(gate):
	"""Lets the sweep come round: its turns are rows that it writes."""
	with sqlite3.connect(gate.dir / "g.db", timeout=20) as db:
		turn = lambda: db.execute("SELECT max(until) FROM hx_gate_turn").fetchone()[0]
		before = turn()
		until(lambda: turn() != before, "a sweep")
		before = turn()
		until(lambda: turn() != before, "another")


def test_set_ahead_frees_no_key(dir):
	clock = Clock(dir)
	write(dir / "gate.json", {"sweep": {"every": "100ms"}, "ttl": "24h"})
	with Service() as service, Server(dir, "gate", "--upstream", service.url, "--store", "sqlite:g.db", "--config",
			"gate.json", env=clock.env) as gate:
		post = lambda key: gate.call("POST", "/pay", {}, [("Idempotency-Key", key)])
		assert post("a")[0] == 200 and records(dir) == 1
		clock.set(25 * 3600)
		assert post("b")[0] == 200
		gate.await_log("the clock of this machine has jumped")
		looked(gate)
		assert records(dir) == 2, "the sweep has gone by a clock that nobody may believe"
		assert post("a")[0] == 200 and len(service.calls) == 2
		clock.set(0)
		post("c")
		gate.await_log("is back where it was")


# A start believes what it finds: that is how a person says that the clock is right.
def test_a_restart_believes(dir):
	clock = Clock(dir)
	write(dir / "gate.json", {"sweep": {"every": "100ms"}, "ttl": "24h"})
	gate = lambda: Server(dir, "gate", "--upstream", service.url, "--store", "sqlite:g.db", "--config", "gate.json",
		env=clock.env)
	with Service() as service:
		with gate() as first:
			assert first.call("POST", "/pay", {}, [("Idempotency-Key", "a")])[0] == 200
			first.stop()
		clock.set(25 * 3600)
		with gate():
			until(lambda: records(dir) == 0, "the sweep of what has expired")


if LIBRARY:
	server.run(globals())
else:
	print("[  SKIPPED ] there is no libfaketime")
END
