#!/usr/bin/env bash
# A run keeps the version that it started with, however many deployments and restarts later: each has sql actions whose statements
# connections prepare, and none of them may push out the version of a run that has not ended.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os, subprocess
import server
from server import Server, until

DEPLOYMENTS = 134
STATEMENTS = 6  # the most that an action has


def order(n):
	"""The n-th deployment. Each statement has a text of its own: nothing can be shared."""
	return {"workflow": "order", "kind": "run",
		"actions": {"note": {"kind": "sql", "statements": [
			{"name": f"note_{i}", "sql": f"INSERT INTO note (run, n) SELECT :id, {n * 10 + i}"} for i in range(STATEMENTS)]}},
		"steps": [{"name": "paid", "type": "external_event", "event": "paid"}, {"name": "note", "type": "task", "action": "note"}]}


def deploy(hapax, n):
	hapax.json("PUT", "/api/v1/definitions/order", order(n), status=200)


def start(hapax):
	return hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "order"}, status=201)["run"]["id"]


def pay(hapax, run):
	until(lambda: hapax.call("POST", f"/api/v1/workflow-runs/{run}/events/paid", {"id": "e", "data": 1})[0] in (200, 202),
		"a run of an old version to take its event", 20)
	until(lambda: hapax.json("GET", f"/api/v1/workflow-runs/{run}", status=200)["status"] == "COMPLETED", "its end", 20)


def walk(dir, store, ask):
	serve = lambda: Server(dir, "serve", "--db", store)
	with serve() as hapax:
		ask("CREATE TABLE note (run text, n bigint)")
		deploy(hapax, 1)
		first = start(hapax)
		ended = start(hapax)
		pay(hapax, ended)
		for n in range(2, DEPLOYMENTS + 1):
			deploy(hapax, n)
			pay(hapax, start(hapax))  # every version has been used, too
		last = start(hapax)
		hapax.process.kill()
		hapax.process.wait()
	with serve() as hapax:
		assert hapax.json("GET", f"/api/v1/workflow-runs/{first}", status=200)["status"] == "WAITING"
		pay(hapax, first)
		pay(hapax, last)
		assert hapax.json("GET", f"/api/v1/workflow-runs/{ended}", status=200)["status"] == "COMPLETED"
		assert "cannot serve here" not in hapax.text(), hapax.text()
		deploy(hapax, DEPLOYMENTS + 1)  # and there is room for more
	wanted = [10 + i for i in range(STATEMENTS)]
	assert ask(f"SELECT n FROM note WHERE run = '{first}' ORDER BY n") == wanted, "it was done by another version"


def test_on_sqlite(dir):
	import sqlite3

	def ask(sql):
		with sqlite3.connect(dir / "h.db", timeout=20) as db:
			return [row[0] for row in db.execute(sql)]

	walk(dir, "sqlite:h.db", ask)


def test_on_postgres(dir):
	pg, schema = os.environ.get("HAPAX_TEST_PG"), f"old_versions_{os.getpid()}"
	if not pg:
		print("# postgres: no server here")
		return

	def psql(*sql):
		return subprocess.run(["psql", "-qXtA", pg, "-v", "ON_ERROR_STOP=1", *(a for s in sql for a in ("-c", s))], check=True,
			capture_output=True, text=True).stdout

	psql(f"CREATE SCHEMA {schema}")
	try:
		walk(dir, f"{pg}?options=-csearch_path%3D{schema}",
			lambda sql: [int(n) for n in psql(f"SET search_path = {schema}", sql).split()])
	finally:
		psql("SET client_min_messages = error", f"DROP SCHEMA {schema} CASCADE")


server.run(globals())
END
