#!/usr/bin/env bash
# A run by its workflow and key: every verb of a run, the key as a segment or in the query; and a start that signals, as one unit.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import concurrent.futures, os, subprocess, urllib.parse
import server
from server import Server, until, write

RUNS = "/api/v1/workflow-runs"
FLOW = {"workflow": "order", "kind": "run", "steps": [
	{"name": "ok", "type": "approval"},
	{"name": "paid", "type": "external_event", "event": "payment", "save_as": "paid"}], "output": "{paid: .state.paid}"}
NAP = {"workflow": "nap", "kind": "run", "steps": [{"name": "a", "type": "wait", "for": "1ms"}]}
PAY = {"workflow": "pay", "kind": "run", "steps": [
	{"name": "paid", "type": "external_event", "event": "payment", "save_as": "paid"},
	{"name": "more", "type": "external_event", "event": "rest"}], "output": "{paid: .state.paid}"}
STORES = ["sqlite:h.db"] + ([os.environ["HAPAX_TEST_PG"]] if os.environ.get("HAPAX_TEST_PG") else [])


def serve(dir, store="sqlite:h.db"):
	for flow in (FLOW, NAP, PAY):
		write(dir / f"workflows/{flow['workflow']}.json", flow)
	return Server(dir, "serve", "--db", store, "--workflows", "workflows")


def segment(key):
	return f"{RUNS}/by-key/order/{urllib.parse.quote(key, safe='')}", ""


def in_query(key):
	return f"{RUNS}/by-key/order", "?key=" + urllib.parse.quote(key, safe="")


def through_all_verbs(hapax, key, way):
	front, rest = way(key)
	ask = lambda method, verb, status, body=None: hapax.json(method, front + verb + rest, body, status=status)
	run = hapax.json("POST", RUNS, {"definitionId": "order", "idempotencyKey": key}, status=201)["run"]["id"]
	until(lambda: ask("GET", "", 200)["status"] == "WAITING", "the approval")
	assert ask("GET", "", 200)["id"] == run
	assert ask("POST", "/pause", 200, {})["status"] == "PAUSED"
	assert ask("POST", "/resume", 200, {})["status"] != "PAUSED"
	assert ask("POST", "/retry", 409, {})["code"] == "WRONG_STATUS"
	assert ask("POST", "/steps/ok/resolve", 409, {"outcome": "done"})["code"] == "WRONG_STATUS"
	assert ask("GET", "/why", 200)["id"] == run
	until(lambda: ask("GET", "", 200)["status"] == "WAITING", "the approval")
	ask("POST", "/approvals/ok", 200, {"decision": "approve"})
	assert ask("POST", "/events/payment", 202, {"id": "e", "data": 7})["duplicate"] is False
	assert ask("POST", "/events/payment", 200, {"id": "e", "data": 7})["duplicate"] is True
	more = "&" if rest else "?"
	done = hapax.json("GET", f"{front}{rest}{more}wait=30s", status=200)
	assert done["status"] == "COMPLETED" and done["output"] == {"paid": 7}, done
	assert ask("POST", "/cancel", 409, {})["code"] == "ALREADY_COMPLETED"
	assert [row["seq"] for row in ask("GET", "/history", 200)["items"]][0] == 1


def test_every_verb_by_key(dir):
	with serve(dir) as hapax:
		through_all_verbs(hapax, "k1", segment)
		through_all_verbs(hapax, "a/b c?%&=ü", segment)
		through_all_verbs(hapax, "k2", in_query)
		through_all_verbs(hapax, "a/b c?%&=ü2", in_query)
		# Keys that are called as verbs are.
		for key in ("events", "cancel", "why", "steps", "approvals"):
			through_all_verbs(hapax, key, segment)
		hapax.json("POST", RUNS, {"definitionId": "order", "idempotencyKey": "other"}, status=201)
		assert hapax.json("POST", f"{RUNS}/by-key/order/other/cancel", {}, status=200)["status"] == "CANCELLED"


def test_whose_key_it_is(dir):
	with serve(dir) as hapax:
		hapax.json("POST", RUNS, {"definitionId": "order", "idempotencyKey": "k"}, status=201)
		for path in (f"{RUNS}/by-key/nap/k", f"{RUNS}/by-key/order/none", f"{RUNS}/by-key/nap?key=k", f"{RUNS}/by-key/order?key="):
			assert hapax.json("GET", path, status=404)["code"] == "NOT_FOUND"
		other = [("Hapax-Workspace", "other")]
		assert hapax.json("GET", f"{RUNS}/by-key/order/k", headers=other, status=404)["code"] == "NOT_FOUND"
		assert hapax.json("POST", f"{RUNS}/by-key/order/cancel?key=k", {}, headers=other, status=404)["code"] == "NOT_FOUND"
		assert hapax.json("GET", f"{RUNS}/by-key/order/k", status=200)["status"] != "CANCELLED"


def test_command_line(dir):
	with serve(dir) as hapax:
		def cli(*args):
			done = subprocess.run([server.HAPAX, "run", *args, "--server", f"http://127.0.0.1:{hapax.port}"], capture_output=True)
			return done.returncode, done.stdout.decode()
		assert cli("start", "order", "--key", "a/b")[0] == 0
		assert cli("show", "order", "--key", "a/b")[0] == 0 and cli("show", "order", "--key", "b")[0] == 4
		assert "version 1" in cli("history", "order", "--key", "a/b")[1] or cli("history", "order", "--key", "a/b")[0] == 0
		assert "CANCELLED" in cli("cancel", "order", "--key", "a/b")[1]


def start(hapax, key, event="payment", id="e", data=1, flow="pay", status=None, headers=(), **more):
	return hapax.json("POST", RUNS, {"definitionId": flow, "idempotencyKey": key, "signal": {"event": event, "id": id, "data": data}, **more},
		headers=headers, status=status)


def runs(hapax):
	return hapax.json("GET", f"{RUNS}?limit=500", status=200)["items"]


def test_start_that_signals(dir):
	for i, store in enumerate(STORES):
		(dir / str(i)).mkdir()
		with serve(dir / str(i), store) as hapax:
			first = start(hapax, "k", data=[1], status=201)
			assert first["created"] is True and first["run"]["version"] == 1
			id = first["run"]["id"]
			until(lambda: hapax.json("GET", f"{RUNS}/{id}")["currentStep"] == "more", "the signal to be taken")
			assert hapax.json("GET", f"{RUNS}/{id}")["state"] == {"paid": [1]}
			again = start(hapax, "k", data=[1], status=200)
			assert again["created"] is False and again["duplicate"] is True and again["run"]["id"] == id
			assert start(hapax, "k", id="e2", status=409)["code"] == "WRONG_STATUS"  # it is past that step
			there = start(hapax, "k", event="rest", id="e3", status=200)
			assert there["created"] is False and "duplicate" not in there
			assert hapax.json("GET", f"{RUNS}/{id}?wait=30s")["status"] == "COMPLETED"
			assert start(hapax, "k", id="e", status=200)["duplicate"] is True  # ahead of any 409
			assert start(hapax, "k", event="rest", id="e4", status=409)["code"] == "WRONG_STATUS"
			hapax.json("POST", f"{RUNS}/{id}/restart", {"from": "more"}, status=200)
			assert start(hapax, "k", id="e", status=200)["duplicate"] is True  # also of a run that goes on as another one
			assert start(hapax, "k", event="rest", id="e5", status=409)["code"] == "RESTARTED"


def test_what_is_refused_does_nothing(dir):
	with serve(dir) as hapax:
		hapax.json("POST", RUNS, {"definitionId": "nap", "idempotencyKey": "n"}, status=201)
		assert start(hapax, "n", status=422)["code"] == "KEY_REUSED"
		assert start(hapax, "new", event="pament", status=404)["code"] == "NOT_FOUND"
		assert start(hapax, "new", flow="nap", status=404)["code"] == "NOT_FOUND"
		assert start(hapax, "hook:a:b", status=400)["code"] == "KEY_RESERVED"
		for signal in ({"event": "payment"}, {"id": "e"}, {"event": "payment", "id": ""}, {"event": "payment", "id": "e", "x": 1}, [], None, "payment"):
			assert hapax.json("POST", RUNS, {"definitionId": "pay", "idempotencyKey": "new", "signal": signal}, status=400)["code"] == "VALIDATION_ERROR"
		assert [run["definitionId"] for run in runs(hapax)] == ["nap"]


def test_many_at_once_are_one_run_and_one_signal(dir):
	for i, store in enumerate(STORES):
		(dir / str(i)).mkdir()
		with serve(dir / str(i), store) as hapax, concurrent.futures.ThreadPoolExecutor(16) as pool:
			key = f"many {i}"
			answers = list(pool.map(lambda _: start(hapax, key), range(48)))
			assert sum(a["created"] for a in answers) == 1 and sum(a.get("duplicate", False) for a in answers) == 47, answers
			answers = list(pool.map(lambda n: start(hapax, key, event="rest", id=f"e{n % 3}"), range(48)))
			assert len([a for a in answers if a.get("created") is False and not a.get("duplicate")]) >= 1, answers
			assert len({a["run"]["id"] for a in answers if "run" in a}) == 1


def test_an_idempotency_key_beside_it(dir):
	with serve(dir) as hapax:
		head = [("Idempotency-Key", "i1")]
		first = start(hapax, "k", status=201, headers=head)
		assert start(hapax, "k", status=201, headers=head) == first
		until(lambda: hapax.json("GET", f"{RUNS}/by-key/pay/k")["currentStep"] == "more", "the signal to be taken")
		assert start(hapax, "k", id="e9", status=409, headers=[("Idempotency-Key", "i2")])["code"] == "WRONG_STATUS"


server.run(globals())
END
