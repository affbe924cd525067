#!/usr/bin/env bash
# Two nodes that are started with one name on one PostgreSQL: each is called otherwise, and what one of them holds is never taken for
# the other's. A node that has been stopped leaves its name to the next.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import json, os, signal, subprocess, threading
import server
from server import Server, Service, until, write

SOON = 40


class Place:
	"""A schema of its own."""

	def __init__(self):
		self.pg, self.name = os.environ["HAPAX_TEST_PG"], f"node_names_{os.getpid()}"
		self.url = f"{self.pg}?options=-csearch_path%3D{self.name}"

	def sql(self, text):
		return subprocess.run(["psql", "-qXtA", self.pg, "-v", "ON_ERROR_STOP=1", "-c", "SET client_min_messages = error", "-c",
			f"SET search_path = {self.name}", "-c", text], check=True, capture_output=True, text=True).stdout.split()

	def __enter__(self):
		self.sql(f"DROP SCHEMA IF EXISTS {self.name} CASCADE")
		self.sql(f"CREATE SCHEMA {self.name}")
		return self

	def __exit__(self, *_):
		self.sql(f"DROP SCHEMA {self.name} CASCADE")


def serve(dir, place, service, name):
	(dir / name).mkdir(exist_ok=True)
	write(dir / name / "workflows/billing.json", {
		"workflow": "billing", "kind": "entity", "meta": {"module": "billing"},
		"status_types": ["open", "busy", "done"], "initial_status": "open",
		"actions": {"Act": {"kind": "http", "url": service.url + "/act", "effect": "claimed", "timeout": "60s"}},
		"steps": [{"step_id": 1, "step_key": "act", "status": "open", "claim_state": ["busy", "open"],
			"successful_state": "done", "action": "Act"}]})
	write(dir / name / "hapax.json", {"modules": {"billing": {"janitor": {"every": "1s", "stuck_after": "1s"}}}})
	return Server(dir / name, "serve", "--db", place.url, "--workflows", "workflows", "--config", "hapax.json", "--node", "twin")


def names(place):
	return sorted(place.sql("SELECT name FROM hx_node WHERE until > hx_now_ms()"))


def test_two_of_one_name(dir):
	with Place() as place, Service() as service, serve(dir, place, service, "a") as a, serve(dir, place, service, "b") as b:
		first, second = names(place)
		assert first == "twin" and second.startswith("twin#"), (first, second)
		assert "another node of this name is alive" in b.text() and "another node of this name" not in a.text()
		# The first claims and falls silent. Its namesake may take over when its time is over, under a fence of its own.
		a.json("POST", "/api/v1/entities/billing", {"id": "x"}, status=201)
		service.hold.clear()
		answers = []
		thread = threading.Thread(target=lambda: answers.append(a.call("POST", "/api/v1/entities/billing/x/steps/act", {})))
		thread.start()
		service.await_calls("/act", 1)
		show = lambda node: node.json("GET", "/api/v1/entities/billing/x", status=200)
		assert show(b)["claim"]["owner"] == "twin", show(b)
		assert b.call("POST", "/api/v1/entities/billing/x/steps/act", {})[0] == 409
		a.process.send_signal(signal.SIGSTOP)
		until(lambda: show(b)["status"] == "open", "the claim of the silent one to end", SOON)
		service.hold.set()
		b.json("POST", "/api/v1/entities/billing/x/steps/act", {}, status=200)
		before = show(b)
		a.process.send_signal(signal.SIGCONT)
		thread.join()
		assert answers[0][0] != 200, "the first one believes that it has finished what was its namesake's by then"
		assert show(b) == before and before["status"] == "done"
		rows = place.sql("SELECT h.to_status || ',' || h.fence || ',' || h.node FROM hx_history h JOIN hx_entity e ON e.subject = h.subject"
			" WHERE h.from_status <> '' ORDER BY h.seq")
		assert rows == ["busy,1,twin", f"open,1,{second}", f"busy,2,{second}", f"done,2,{second}"], rows


def test_a_name_is_free_after_a_stop(dir):
	with Place() as place, Service() as service:
		for _ in range(2):
			with serve(dir, place, service, "a") as a:
				assert names(place) == ["twin"]
				a.stop()
			assert names(place) == []
		assert "another node of this name" not in a.text()


if "HAPAX_TEST_PG" in os.environ:
	server.run(globals())
else:
	print("[  SKIPPED ] there is no PostgreSQL")
END
