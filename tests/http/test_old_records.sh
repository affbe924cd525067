#!/usr/bin/env bash
# Idempotency-Keys across an upgrade: a store as version 0.1 left it, with records that it wrote for its own API (their keys,
# fingerprints and answers are copied from such a store), is brought up to date; who then repeats a request is told the same
# as before, and nothing is done twice. On both stores.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import json, os, sqlite3, subprocess, time
import server
from server import ROOT, Server, write

JOB = {"queue": "q", "payload": {"n": 1}}
JOB_PRINT = "80C6D8A9F1418B1B2ADA371DA7EB2BCA88E44F8A00F26643F27E8D4D2E03B4E4"
RECORDS = {  # by key as sent by the requester alice of the workspace w: record key and fingerprint
	"done-job": ("CED6C751780219B04C96F2AFA3162FF99D6D028CB58E1A08DBCB6BC3D3C8443D", JOB_PRINT),
	"open-job": ("1AAC3482D86292608657FFBD4C1D33101388DE6562329C641D38A2019792B24C", JOB_PRINT),
	"lost-job": ("E01B510158E01AE0F70F4E6413810A7830A323CC2A84D4CA81D73C04F645F290", JOB_PRINT),
	"done-entity": ("0FDD0D72B8E091D6CCFACDF55339CCC111FE502E9CCD7F7A20F3F1042CC8C521",
		"7D3440545C81B8CC657ADF98297694B2221C2CFE0440331D789245C6468267AD"),
}
JOB_ANSWER = "48310000C900010000000000000034000C00000010436F6E74656E742D547970656170706C69636174696F6E2F6A736F6E" + \
	b'{"jobs":[{"id":"job_0aj2x91p5v40c","created":true}]}'.hex()
ENTITY_BODY = b'{"workflow":"e","id":"e1","status":"open","version":1,"data":{},"claim":null,"updatedAt":"2026-11-16T09:53:57.720Z"}'
ENTITY_ANSWER = f"48310000C90002{len(ENTITY_BODY):016X}" + "000C00000010" + b"Content-Typeapplication/json".hex() + \
	"000400000003" + b'ETag"1"'.hex() + ENTITY_BODY.hex()
FLOW = {"workflow": "e", "kind": "entity", "status_types": ["open", "paid"], "initial_status": "open",
	"steps": [{"step_id": 1, "step_key": "pay", "status": "open", "successful_state": "paid"}]}
DAY = 86400000


def old_schema(driver):
	"""What version 0.1 has made, with its numbers."""
	files = sorted((ROOT / "src/db/schema").glob("000[1-8]_*.sql"))
	assert len(files) == 8, files
	text = "CREATE TABLE schema_version (number INTEGER PRIMARY KEY, name TEXT NOT NULL);\n"
	for number, file in enumerate(files, 1):
		text += subprocess.check_output(["scripts/embed-schema.sh", "--old", driver, file], cwd=ROOT, text=True) + f"\nINSERT INTO schema_version VALUES ({number}, 'x');\n"
	return text


def record(blob, key, state, left_ms, answer=None):
	hash, fingerprint = RECORDS[key]
	now = int(time.time() * 1000)
	return ("INSERT INTO gate_record (key, status, token, fingerprint, held, created_at, until, expires_at, sweep_at, key_text,"
		f" endpoint, response) VALUES ({blob(hash)}, {state}, {blob('00' * 16)}, {blob(fingerprint)}, 0, {now}, {now + left_ms},"
		f" {now + DAY}, {now + DAY}, {blob(key.encode().hex())}, NULL, {blob(answer) if answer else 'NULL'});\n")


def old_store(driver, open_ms=600000):
	blob = (lambda hex: f"x'{hex}'") if driver == "sqlite" else (lambda hex: f"'\\x{hex}'")
	return (old_schema(driver) + record(blob, "done-job", 2, 0, JOB_ANSWER) + record(blob, "open-job", 1, open_ms) +
		record(blob, "lost-job", 1, -1000) + record(blob, "done-entity", 2, 0, ENTITY_ANSWER))


def post(hapax, path, body, key, requester="alice"):
	return hapax.call("POST", path, body,
		[("Hapax-Workspace", "w"), ("Hapax-Requester", requester), ("Idempotency-Key", key)])


def expect(answer, status, word, body=b""):
	assert answer[0] == status and word in answer[1] and body in answer[2], answer


def jobs(hapax):
	return len(hapax.json("GET", "/api/v1/jobs", headers=[("Hapax-Workspace", "w")])["items"])


def judge(dir, url):
	"""Twice: after the migration, and after a restart of what was migrated before, which still may have such records."""
	write(dir / "flows/e.json", FLOW)
	for start in range(2):
		with Server(dir, "serve", "--db", url, "--workflows", "flows") as hapax:
			for _ in range(2):
				expect(post(hapax, "/api/v1/jobs", JOB, "done-job"), 201, "Idempotency-Status: replayed", b"job_0aj2x91p5v40c")
				expect(post(hapax, "/api/v1/jobs", JOB, "open-job"), 409, "Idempotency-Status: conflict", b"IN_FLIGHT")
				expect(post(hapax, "/api/v1/entities/e", {"id": "e1"}, "done-entity"), 201, "replayed", ENTITY_BODY)
			for key in RECORDS:
				if key != "done-entity":
					expect(post(hapax, "/api/v1/jobs", {"queue": "other"}, key), 422, "mismatch", b"FINGERPRINT_MISMATCH")
			assert jobs(hapax) == start
			if start == 0:  # as 0.1 would have let it: its holder is gone, and its lease over
				expect(post(hapax, "/api/v1/jobs", JOB, "lost-job"), 201, "created")
			expect(post(hapax, "/api/v1/jobs", JOB, "lost-job"), 201, "replayed")
			expect(post(hapax, "/api/v1/jobs", JOB, "lost-job", "bob"), 422, "mismatch", b"CALLER_MISMATCH")
			assert jobs(hapax) == 1
			hapax.stop()
	with Server(dir, "serve", "--db", url, "--workflows", "flows") as hapax:
		# What another requester does with the same key is its own, as it was in 0.1, and does not hide the older record.
		expect(post(hapax, "/api/v1/jobs", JOB, "done-job", "bob"), 201, "created")
		expect(post(hapax, "/api/v1/jobs", JOB, "done-job"), 201, "replayed", b"job_0aj2x91p5v40c")
		expect(post(hapax, "/api/v1/jobs", JOB, "new-key"), 201, "created")
		expect(post(hapax, "/api/v1/jobs", JOB, "new-key"), 201, "replayed")
		expect(post(hapax, "/api/v1/entities/e", {"id": "e2"}, "new-entity"), 201, "created")
		expect(post(hapax, "/api/v1/entities/e", {"id": "e2"}, "new-entity"), 201, "replayed")
		assert jobs(hapax) == 3


def test_repeated_after_an_upgrade_on_sqlite(dir):
	db = sqlite3.connect(dir / "old.db")
	db.executescript(old_store("sqlite"))
	db.close()
	judge(dir, "sqlite:old.db")


if os.environ.get("HAPAX_TEST_PG"):
	def test_repeated_after_an_upgrade_on_postgres(dir):
		def psql(text):
			done = subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", PG], input=text.encode(), capture_output=True)
			assert done.returncode == 0, done.stderr
		schema = f"old_{os.getpid()}"
		try:
			psql(f"CREATE SCHEMA {schema}; SET search_path = {schema};\n" + old_store("postgres"))
			judge(dir, f"{PG}{'&' if '?' in PG else '?'}options=-csearch_path%3D{schema}")
		finally:
			psql(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
	PG = os.environ["HAPAX_TEST_PG"]


server.run(globals())
END
