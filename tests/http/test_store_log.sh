#!/usr/bin/env bash
# A store that fails says why in the log: once for as long as it lasts, in its own words, and once more when it works again. Callers
# get a code and no words of the store.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import json, os, sqlite3, subprocess
import server
from server import Server, Service, until, write

PUSHED = 5


def events(hapax, message):
	return [e for e in map(json.loads, hapax.text().splitlines()) if e["message"] == message]


def push(hapax):
	return hapax.call("POST", "/api/v1/jobs", [{"queue": "q", "payload": "x" * 20000}])


def fails_in_words(hapax, words):
	"""Of the lane, which writes: one event, however many requests have failed."""
	for _ in range(PUSHED):
		status, head, body = push(hapax)
		assert status == 503, (status, body)
		problem = json.loads(body)
		assert problem["code"] == "STORE_UNAVAILABLE" and words not in body.decode() and "job" not in problem.get("detail", ""), body
	failed = [e for e in events(hapax, "the store fails") if "lane" in e]
	by_lane = {e["lane"] for e in failed}
	assert failed and len(failed) == len(by_lane), failed
	assert all(e["level"] == "error" and words in e["detail"] and e["units"] >= 1 and e["statement"] for e in failed), failed
	assert not events(hapax, "the store works again")
	assert hapax.call("GET", "/readyz")[0] == 200


def works_again(hapax):
	until(lambda: push(hapax)[0] == 201, "the store to work")
	again = until(lambda: push(hapax) and events(hapax, "the store works again"), "the log to say so")  # each lane says it of itself
	assert again[0]["level"] == "info" and again[0]["units_failed"] >= 1, again


def test_sqlite_has_lost_a_table(dir):
	def sql(text):
		with sqlite3.connect(dir / "h.db", timeout=20) as db:
			db.execute(text)

	with Server(dir, "serve", "--db", "sqlite:h.db") as hapax:
		assert push(hapax)[0] == 201 and not events(hapax, "the store fails")
		sql("ALTER TABLE hx_job RENAME TO hx_job_gone")
		fails_in_words(hapax, "no such table: hx_job")
		# The readers have connections, and words, of their own.
		assert hapax.call("GET", "/api/v1/jobs")[0] == 503
		(read,) = [e for e in events(hapax, "the store fails") if "reader" in e]
		assert "no such table: hx_job" in read["detail"], read
		sql("ALTER TABLE hx_job_gone RENAME TO hx_job")
		works_again(hapax)


# What is wrong with one is told of that one, and is no trouble of the store.
def test_one_unit_is_refused(dir):
	with Server(dir, "serve", "--db", "sqlite:h.db") as hapax:
		assert push(hapax)[0] == 201
		with sqlite3.connect(dir / "h.db", timeout=20) as db:
			db.execute("CREATE TRIGGER picky BEFORE INSERT ON hx_job WHEN NEW.queue = 'bad' BEGIN SELECT RAISE(ABORT, 'not that one'); END")
		status, _, body = hapax.call("POST", "/api/v1/jobs", [{"queue": "bad"}])
		assert status >= 500 and b"not that one" not in body, (status, body)
		assert push(hapax)[0] == 201
		(refused,) = events(hapax, "the store refused one unit of work")
		assert refused["level"] == "warn" and refused["code"] == "DATA_ERROR" and "not that one" in refused["detail"], refused
		assert refused["op"].startswith("op_") and refused["subject"] == "" and refused["lane"] == 1, refused
		assert not events(hapax, "the store fails")


def test_a_gate_has_lost_a_table(dir):
	with Service() as service, Server(dir, "gate", "--upstream", service.url, "--store", "sqlite:g.db") as gate:
		post = lambda key: gate.call("POST", "/", {}, [("Idempotency-Key", key)])[0]
		assert post("a") == 200
		with sqlite3.connect(dir / "g.db", timeout=20) as db:
			db.execute("ALTER TABLE hx_gate_record RENAME TO gone")
		assert [post(f"b{i}") for i in range(PUSHED)] == [503] * PUSHED
		(failed,) = events(gate, "the store fails")
		assert "no such table: hx_gate_record" in failed["detail"], failed
		assert len(service.calls) == 1


# A file system of 2 MB with a file in it that can be taken away again. Who may not mount one does not run this.
def test_sqlite_has_no_room(dir):
	hapax_itself, inside = server.HAPAX, dir / "inside"
	(dir / "small").mkdir()
	write(inside, f'#!/bin/sh\nexec unshare -rm sh -c \'mount -t tmpfs -o size=2m none small && head -c 1000000 /dev/zero >small/ballast &&'
		f' exec "$0" "$@"\' {hapax_itself} "$@"\n')
	inside.chmod(0o755)
	if subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "none", dir / "small"], stderr=subprocess.DEVNULL).returncode:
		print("# no_room: no file system can be mounted here")
		return
	server.HAPAX = inside
	try:
		with Server(dir, "serve", "--db", "sqlite:small/h.db") as hapax:
			until(lambda: push(hapax)[0] == 503, "the disk to be full")
			fails_in_words(hapax, "database or disk is full")
			assert hapax.call("GET", "/api/v1/jobs")[0] == 200  # what is there can be read
			os.unlink(f"/proc/{hapax.process.pid}/root{dir}/small/ballast")
			works_again(hapax)
			hapax.stop()
	finally:
		server.HAPAX = hapax_itself


def test_postgres_has_lost_a_table(dir):
	pg, schema = os.environ.get("HAPAX_TEST_PG"), f"store_log_{os.getpid()}"
	if not pg:
		print("# postgres: no server here")
		return

	def sql(text):
		subprocess.run(["psql", "-qX", pg, "-v", "ON_ERROR_STOP=1", "-c", text], check=True, stderr=subprocess.DEVNULL)

	sql(f"CREATE SCHEMA {schema}")
	try:
		with Server(dir, "serve", "--db", f"{pg}?options=-csearch_path%3D{schema}") as hapax:
			assert push(hapax)[0] == 201 and not events(hapax, "the store fails")
			sql(f"ALTER TABLE {schema}.hx_job RENAME TO hx_job_gone")
			fails_in_words(hapax, '42P01 relation "hx_job" does not exist')
			sql(f"ALTER TABLE {schema}.hx_job_gone RENAME TO hx_job")
			works_again(hapax)
			hapax.stop()
	finally:
		sql(f"DROP SCHEMA {schema} CASCADE")


server.run(globals())
END
