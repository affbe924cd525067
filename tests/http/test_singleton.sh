#!/usr/bin/env bash
# `singleton` of a workflow: a start while one is not terminal is answered with that one, however many start, on both stores and two nodes.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import concurrent.futures, hashlib, hmac, itertools, json, os
import server
from server import Server, until, write

RUNS = "/api/v1/workflow-runs"
PG = os.environ.get("HAPAX_TEST_PG")
STORES = ["sqlite:h.db"] + ([PG] if PG else [])
STEPS = [{"name": "go", "type": "external_event", "event": "go"}, {"name": "ok", "type": "approval"}]
SYNC = {"workflow": "sync", "kind": "run", "limits": {"singleton": {"by": ".input.customer"}}, "steps": STEPS}
ONE = {"workflow": "one", "kind": "run", "limits": {"singleton": {}}, "steps": STEPS}
HOOKS = {"begin": {"verify": {"scheme": "hmac-sha256", "secrets": ["s"]}, "id": "/id", "start": {"workflow": "sync", "input": "{customer: .customer}"}}}


def serve(dir, store, *args):
	for flow in (SYNC, ONE):
		write(dir / f"workflows/{flow['workflow']}.json", flow)
	write(dir / "config.json", {"hooks": HOOKS})
	return Server(dir, "serve", "--db", store, "--workflows", "workflows", "--config", "config.json", *args)


def start(hapax, customer, flow="sync", status=None, headers=(), **more):
	return hapax.json("POST", RUNS, {"definitionId": flow, "input": {"customer": customer}, **more}, headers=headers, status=status)


def made(hapax, *args, **more):
	answer = start(hapax, *args, status=201, **more)
	assert answer["created"] is True, answer
	return answer["run"]["id"]


def found(hapax, *args, **more):
	answer = start(hapax, *args, status=200, **more)
	assert answer["created"] is False, answer
	return answer["run"]["id"]


def verb(hapax, id, name, body=None, status=200):
	return hapax.json("POST", f"{RUNS}/{id}/{name}", body or {}, status=status)


def fail(hapax, id):
	verb(hapax, id, "events/go", {"id": "e"}, status=202)
	until(lambda: hapax.json("GET", f"{RUNS}/{id}")["currentStep"] == "ok", "the approval")
	until(lambda: hapax.json("GET", f"{RUNS}/{id}")["status"] == "WAITING", "the approval")
	verb(hapax, id, "approvals/ok", {"decision": "reject"})
	until(lambda: hapax.json("GET", f"{RUNS}/{id}")["status"] == "FAILED", "the rejection")


numbers = itertools.count()


# The store of PostgreSQL is one for all: each has customers of its own.
def on_each_store(dir):
	for i, store in enumerate(STORES):
		(dir / str(i)).mkdir()
		with serve(dir / str(i), store) as hapax:
			yield hapax, f"c{next(numbers)}"


def test_one_is_answered_with(dir):
	for hapax, c in on_each_store(dir):
		first = made(hapax, c, idempotencyKey=f"{c}/a")
		assert found(hapax, c) == first and found(hapax, c, idempotencyKey=f"{c}/b") == first
		assert found(hapax, c, headers=[("Idempotency-Key", f"{c}/i")]) == first
		assert start(hapax, c, extra=1)["code"] == "VALIDATION_ERROR"
		other = made(hapax, c + "other")
		assert other != first and made(hapax, c, headers=[("Hapax-Workspace", "w")]) not in (first, other)
		alone = made(hapax, 1, flow="one")
		assert found(hapax, 2, flow="one") == alone and start(hapax, 2, flow="one")["inputDiffers"] is True
		verb(hapax, alone, "cancel")
		verb(hapax, first, "cancel")
		# The key of the one that is over says what it said; that of the one that was answered with it has started nothing.
		second = made(hapax, c, idempotencyKey=f"{c}/b")
		assert second != first and found(hapax, c, idempotencyKey=f"{c}/a") == first and found(hapax, c) == second
		assert start(hapax, c, flow="one", idempotencyKey=f"{c}/a", status=422)["code"] == "KEY_REUSED"


def test_what_has_failed_counts_again_after_a_retry(dir):
	for hapax, c in on_each_store(dir):
		first = made(hapax, c)
		fail(hapax, first)
		second = made(hapax, c)
		verb(hapax, first, "retry")  # it is no start
		assert found(hapax, c) in (first, second)
		verb(hapax, second, "cancel")
		assert found(hapax, c) == first
		verb(hapax, first, "cancel")
		third = made(hapax, c)
		fail(hapax, third)
		restarted = hapax.json("POST", f"{RUNS}/{third}/restart", {"from": "ok"}, status=200)
		new = hapax.json("GET", f"{RUNS}/{third}")["restartedBy"]
		assert found(hapax, c) == new, restarted


def test_a_signal_goes_to_the_one_that_is_there(dir):
	signal = lambda id: {"signal": {"event": "go", "id": id}}
	for hapax, c in on_each_store(dir):
		first = made(hapax, c, idempotencyKey=f"{c}/a")
		assert found(hapax, c, idempotencyKey=f"{c}/b", **signal("e")) == first
		until(lambda: hapax.json("GET", f"{RUNS}/{first}")["currentStep"] == "ok", "the event")
		assert start(hapax, c, idempotencyKey=f"{c}/b", status=200, **signal("e"))["duplicate"] is True
		verb(hapax, first, "cancel")
		second = made(hapax, c, idempotencyKey=f"{c}/b", **signal("e"))
		assert second != first and found(hapax, c, **signal("e")) == second


def test_a_hook_declines(dir):
	def deliver(hapax, id, customer):
		body = json.dumps({"id": id, "customer": customer}).encode()
		mac = hmac.new(b"s", body, hashlib.sha256).hexdigest()
		return hapax.json("POST", "/hooks/begin", body, headers=[("X-Signature", mac)], status=200)
	for hapax, c in on_each_store(dir):
		assert deliver(hapax, f"{c}1", c) == {"accepted": True, "duplicate": False}
		assert deliver(hapax, f"{c}1", c)["duplicate"] is True
		assert deliver(hapax, f"{c}2", c) == {"accepted": False, "duplicate": False}
		verb(hapax, found(hapax, c), "cancel")
		assert deliver(hapax, f"{c}2", c)["duplicate"] is True  # it was kept
		made(hapax, c)


def starts_at_once(nodes, c):
	with concurrent.futures.ThreadPoolExecutor(16) as pool:
		for round in range(4):
			more = lambda n: {"idempotencyKey": f"{c}/{round}/{n}"} if n % 2 else {}
			answers = list(pool.map(lambda n: start(nodes[n % len(nodes)], c, **more(n)), range(32)))
			assert sum(a["created"] for a in answers) == 1, {a["run"]["id"]: a["created"] for a in answers}
			ids = {a["run"]["id"] for a in answers}
			assert len(ids) == 1, ids
			verb(nodes[0], ids.pop(), "cancel")


def test_many_at_once_are_one_run(dir):
	for hapax, c in on_each_store(dir):
		starts_at_once([hapax], c)


def test_many_at_once_on_two_nodes(dir):
	if not PG:
		return
	for n in "ab":
		(dir / n).mkdir()
	with serve(dir / "a", PG) as a, serve(dir / "b", PG) as b:
		starts_at_once([a, b], "both")


server.run(globals())
END
