#!/usr/bin/env bash
# The evidence of every noun, on both stores: taken from a running server, checked without it, and what is found when it was tampered
# with, in the store or in the file. What a reader makes of any text is tests/unit/flow/test_evidence.c.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support:tests/http exec python3 - <<'END2'
import contextlib
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import urllib.parse

import dashboard_scene as scenes
import server
from server import until

PG = os.environ.get("HAPAX_TEST_PG")


@contextlib.contextmanager
def postgres():
	"""A database of its own: the tables of the others are theirs."""
	name = f"evidence_{os.getpid()}"
	sql = lambda text: subprocess.run(["psql", "-qX", PG, "-c", text], check=True)
	sql(f"CREATE DATABASE {name}")
	try:
		yield PG.rsplit("/", 1)[0] + "/" + name
	finally:
		sql(f"DROP DATABASE {name} WITH (FORCE)")


def run(dir, *args, code=0, text=None):
	done = subprocess.run([server.HAPAX, *args], cwd=dir, capture_output=True, text=True, input=text)
	assert done.returncode == code, f"{args}: {done.returncode}, not {code}: {done.stdout}{done.stderr}"
	return done.stdout if code == 0 else done.stderr


def evidence(dir, hapax, subject, file="e.json"):
	run(dir, "evidence", subject, "-o", file, "--server", f"http://127.0.0.1:{hapax.port}")
	return json.loads((dir / file).read_text())


def walk(dir, url):
	with scenes.World() as world, scenes.serve(dir, world, url) as hapax:
		scene = scenes.Scene(hapax)
		scene.ask("POST", f"batches/{scene.film}/cancel", {})
		world.go.set()
		until(lambda: scene.ask("GET", f"batches/{scene.film}")["status"] == "CANCELLED", "the batch is torn down")
		schedule = scene.ask("GET", "schedules/nightly")["id"]
		evil = scenes.EVIL[:120].replace("\u0007", "")
		subjects = {name: noun for noun, names in {
			"run": scene.runs.values(), "batch": (scene.batch, scene.film, scene.held), "job": (scene.job,), "schedule": (schedule,),
			"entity": ("entity:invoice:inv-100", f"entity:invoice:{evil}"), "account": ("account:alice", "account:<b>bob</b>")}.items() for name in names}
		assert len(subjects) == 21, len(subjects)
		for subject, noun in subjects.items():
			e = evidence(dir, hapax, subject)
			text = (dir / "e.json").read_bytes()
			assert text.endswith(b'"}\n') and hashlib.sha256(text[:-78]).hexdigest() == e["sha256"], subject
			assert (e["subject"]["name"], e["subject"]["noun"]) == (subject, noun)
			assert len(e["history"]) == e["subject"]["seq"] and e["history"][-1]["hash"] == e["subject"]["head"], subject
			said = run(dir, "audit", "--bundle", "e.json")
			assert said.startswith("whole: ") and e["subject"]["head"] in said, said
			assert json.loads(run(dir, "audit", "--bundle", "-", "--json", text=text.decode()))["historyRows"] == len(e["history"])
			definition, ledger = e["definition"], e["ledger"]
			assert bool(definition) == (noun in ("run", "batch", "entity")) and bool(ledger) == (noun in ("batch", "account")), (subject, definition, ledger)
			if definition:
				assert hashlib.sha256(definition["text"].encode()).hexdigest() == definition["textSha256"]
		e = evidence(dir, hapax, scene.film)
		assert e["ledger"]["charged"] == e["ledger"]["refunded"] > 0 and {x["reason"] for x in e["ledger"]["entries"]} == {"charge", "refund"}, e["ledger"]
		e = evidence(dir, hapax, scene.batch)
		assert len(e["ledger"]["entries"]) > 60 and all(x["key"].startswith(f"/{scene.batch}/") for x in e["ledger"]["entries"])
		for subject in ("run_0000000000000", "entity:invoice:none", "entity:none:none", "account:none", "elsewhere", "op_0000000000000", "subject_" + scene.film[6:]):
			status = hapax.call("GET", "/api/v1/evidence/" + urllib.parse.quote(subject, safe=""))[0]
			assert status == 404, (subject, status)
		return scene


def test_every_noun_on_sqlite(dir):
	walk(dir, "sqlite:h.db")


if PG:
	def test_every_noun_on_postgres(dir):
		with postgres() as url:
			walk(dir, url)


def small(dir, hapax):
	"""A run with a reason in its history, and an account."""
	id = hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "parcel"})["run"]["id"]
	until(lambda: hapax.json("GET", f"/api/v1/workflow-runs/{id}")["status"] == "WAITING", "it waits")
	hapax.json("POST", f"/api/v1/workflow-runs/{id}/cancel", {"reason": "not wanted any more"})
	hapax.json("POST", "/api/v1/accounts", {"id": "alice", "balance": 100}, status=201)
	hapax.json("POST", "/api/v1/accounts/alice/credit", {"amount": 20, "key": "gift"}, status=200)
	return id


def test_what_is_tampered_with_in_the_store(dir):
	with scenes.World() as world, scenes.serve(dir, world) as hapax:
		id = small(dir, hapax)

		def tampered(sql, subject, *words):
			with contextlib.closing(sqlite3.connect(dir / "h.db", timeout=30)) as store:
				store.execute(sql)
				store.commit()
			evidence(dir, hapax, subject)
			said = run(dir, "audit", "--bundle", "e.json", code=1)
			for word in words:
				assert word in said, (sql, said)
		tampered("UPDATE hx_ledger SET amount = 30 WHERE key = 'gift'", "account:alice", "account:alice, ledger entry 2: balance: expected 130, found 120")
		tampered("UPDATE hx_subject SET version = version + 1 WHERE id IN (SELECT subject FROM hx_run)", id, f"{id}: version: expected")
		tampered("UPDATE hx_history SET node = 'elsewhere' WHERE seq = 2 AND subject IN (SELECT subject FROM hx_run)", id, f"{id}, history row 2: hash")
		tampered("DELETE FROM hx_history WHERE seq = 1 AND subject IN (SELECT subject FROM hx_run)", id, f"{id}, history row 2:")


def test_what_is_tampered_with_in_the_file(dir):
	with scenes.World() as world, scenes.serve(dir, world) as hapax:
		id = small(dir, hapax)
		evidence(dir, hapax, id, "run.json")
		evidence(dir, hapax, "account:alice", "account.json")
	text = (dir / "run.json").read_text()

	def changed(old, new, *words, file="run.json", code=1):
		text = (dir / file).read_text()
		assert text.count(old) >= 1, old
		(dir / "t.json").write_text(text.replace(old, new, 1))
		said = run(dir, "audit", "--bundle", "t.json", code=code)
		assert all(word in said for word in words), (old, new, said)
	changed("not wanted any more", "not wanted ANY more", id, "history row ", "text: expected")
	changed('"workspace":"default"', '"workspace":"another"', f"{id}: file: expected")
	changed('"noun":"run"', '"noun":"job"', "evidence: subject: expected")
	changed("parcel", "parce1", "definition: expected")
	changed('"amount":20', '"amount":21', "account:alice, ledger entry 2: text", file="account.json")
	changed('"balance":120,"charged"', '"balance":121,"charged"', "account:alice: balance: expected 120, found 121", file="account.json")
	changed("hapax-evidence-1", "hapax-evidence-9", "t.json: it is no evidence", code=2)
	changed("\n", "", f"{id}: file: expected")
	changed('{"format"', '{"format":"hapax-evidence-1","format"', "t.json: ", "format", code=2)
	# sealed again by somebody who knows how: then the links tell
	rows = text.split("\n")
	for i, row in enumerate(rows):
		match = re.fullmatch(r'(\{"seq":2,.*),"sha256":"[0-9a-f]{64}"\}(.*)', row)
		if match:
			body = re.sub(r'"node":"[^"]*"', '"node":"elsewhere"', match[1])
			rows[i] = f'{body},"sha256":"{hashlib.sha256(body.encode()).hexdigest()}"}}{match[2]}'
	(dir / "t.json").write_text("\n".join(rows))
	assert f"{id}, history row 2: hash: expected" in run(dir, "audit", "--bundle", "t.json", code=1)
	found = subprocess.run([server.HAPAX, "audit", "--bundle", "t.json", "--json"], cwd=dir, capture_output=True, text=True)
	assert json.loads(found.stdout)["violation"]["what"] == "hash" and json.loads(found.stdout)["whole"] is False, found.stdout
	(dir / "t.json").write_text(text[:-40])
	assert "t.json: " in run(dir, "audit", "--bundle", "t.json", code=2)
	assert "none.json" in run(dir, "audit", "--bundle", "none.json", code=2)


def test_who_may(dir):
	with scenes.World() as world, scenes.serve(dir, world) as hapax:
		key = lambda scope, workspace: json.loads(run(dir, "key", "create", "--scope", scope, "--workspace", workspace, "--db", "sqlite:h.db", "--json"))["key"]
		id = small(dir, hapax)
		reader, admin, other = key("read", "default"), key("admin", "default"), key("admin", "other")
		ask = lambda key: hapax.call("GET", f"/api/v1/evidence/{id}", headers=[("Authorization", f"Bearer {key}")])
		until(lambda: ask("hx_none")[0] == 401, "keys are wanted")
		status, _, text = ask(reader)
		assert status == 200 and json.loads(text)["definition"]["text"] is None
		(dir / "r.json").write_bytes(text)
		run(dir, "audit", "--bundle", "r.json")
		assert json.loads(ask(admin)[2])["definition"]["text"]
		assert ask(other)[0] == 404


server.run(globals())
END2
