#!/usr/bin/env bash
# `debounce` of a workflow: starts while a run has not begun are that run, with the last input, on both stores and two nodes.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import concurrent.futures, hashlib, hmac, itertools, json, os, threading, urllib.parse
import server
from server import Server, Service, until, write

RUNS = "/api/v1/workflow-runs"
PG = os.environ.get("HAPAX_TEST_PG")
STORES = ["sqlite:h.db"] + ([PG] if PG else [])
BY = ".input.customer"
HOOKS = {"begin": {"verify": {"scheme": "hmac-sha256", "secrets": ["s"]}, "id": "/id", "start": {"workflow": "calm", "input": "{customer: .customer, v: .id}"}}}


def flow(name, debounce, url, **more):
	return {"workflow": name, "kind": "run", "limits": {"debounce": {"by": BY, **debounce}, **more}, "attributes": {"v": ".input.v"},
		"actions": {"sync": {"kind": "http", "url": url, "effect": "keyed"}},
		"steps": [{"name": "sync", "type": "task", "action": "sync", "input": "{c: .input.customer, v: .input.v}"},
			{"name": "go", "type": "external_event", "event": "go", "timeout": "1ms", "on_timeout": "continue"}]}


def serve(dir, store, service=None, *args):
	url = service.url + "/" if service else "http://127.0.0.1:1/"
	for f in (flow("calm", {"for": "1h"}, url), flow("quick", {"for": "300ms"}, url), flow("short", {"for": "2s"}, url),
			flow("bounded", {"for": "20m", "at_most": "20m"}, url), flow("soon", {"for": "5s", "at_most": "5s"}, url),
			flow("one", {"for": "1h"}, url, singleton={"by": BY})):
		write(dir / f"workflows/{f['workflow']}.json", f)
	write(dir / "config.json", {"hooks": HOOKS})
	return Server(dir, "serve", "--db", store, "--workflows", "workflows", "--config", "config.json", *args)


numbers = itertools.count()


# The store of PostgreSQL is one for all: each has customers of its own.
def on_each_store(dir, service=None):
	for i, store in enumerate(STORES):
		(dir / str(i)).mkdir()
		with serve(dir / str(i), store, service) as hapax:
			yield hapax, f"c{next(numbers)}"


def start(hapax, customer, v, key=None, name="calm", status=None, headers=(), **more):
	body = {"definitionId": name, "input": {"customer": customer, "v": v}, **more}
	if key:
		body["idempotencyKey"] = key
	return hapax.json("POST", RUNS, body, headers=headers, status=status)


def made(hapax, *args, **more):
	answer = start(hapax, *args, status=201, **more)
	assert answer["created"] is True, answer
	return answer["run"]["id"]


def joined(hapax, *args, **more):
	answer = start(hapax, *args, status=200, **more)
	assert answer["created"] is False and answer["run"]["status"] == "PENDING", answer
	return answer["run"]["id"]


def show(hapax, id):
	return hapax.json("GET", f"{RUNS}/{id}", status=200)


def by_key(hapax, key, name="calm", status=200):
	return hapax.json("GET", f"{RUNS}/by-key/{name}/{urllib.parse.quote(key, safe='')}", status=status)


def test_starts_are_one_run_with_the_last_input(dir):
	for hapax, c in on_each_store(dir):
		first = made(hapax, c, 1, f"{c}/a")
		assert joined(hapax, c, 2, f"{c}/b") == first and joined(hapax, c, 3) == first
		run = show(hapax, first)
		assert run["input"]["v"] == 3 and run["idempotencyKey"] == f"{c}/a" and run["version"] == 3, run
		# An answer that was lost: the same key again is that run, and changes nothing.
		for key in "ab":
			again = start(hapax, c, 9, f"{c}/{key}", status=200)
			assert again["run"]["id"] == first and again["created"] is False and again["inputDiffers"] is True, again
			assert by_key(hapax, f"{c}/{key}")["id"] == first
		assert by_key(hapax, f"{c}/z", status=404)["code"] == "NOT_FOUND"
		assert show(hapax, first)["input"]["v"] == 3
		assert start(hapax, c, 4, f"{c}/b", name="quick", status=422)["code"] == "KEY_REUSED"
		# By what it has now it is found, and by nothing else.
		found = lambda v: [r["id"] for r in hapax.json("GET", f"{RUNS}?where=" + urllib.parse.quote(f'v == {v} and workflow == "calm"'))["items"]]
		assert first in found(3) and first not in found(1) + found(2), (found(3), first)
		why = hapax.json("GET", f"/api/v1/why/{first}")
		assert why["reason"] == "RUN_DEBOUNCE" and "another start before that replaces its input" in why["why"], why
		assert "at most until" in hapax.json("GET", f"/api/v1/why/{made(hapax, c, 1, name='bounded')}")["why"]
		history = hapax.json("GET", f"{RUNS}/{first}/history")["items"]
		assert sum(row.get("reason") == "another start has replaced its input" for row in history) == 2, history
		other = made(hapax, c + "other", 1)
		assert other != first and made(hapax, c, 1, headers=[("Hapax-Workspace", "w")]) not in (first, other)
		hapax.json("POST", f"{RUNS}/by-key/calm/{urllib.parse.quote(f'{c}/b', safe='')}/cancel", {}, status=200)
		assert show(hapax, first)["status"] == "CANCELLED"
		assert made(hapax, c, 5, f"{c}/c") != first and start(hapax, c, 6, f"{c}/b", status=200)["run"]["id"] == first
		assert [r["id"] for r in hapax.json("GET", f"{RUNS}?definitionId=calm")["items"]].count(first) == 1


def test_a_header_repeats_its_answer(dir):
	for hapax, c in on_each_store(dir):
		first = made(hapax, c, 1)
		headers = [("Idempotency-Key", f"{c}/h")]
		answer = hapax.call("POST", RUNS, {"definitionId": "calm", "input": {"customer": c, "v": 2}}, headers)
		assert answer[0] == 200, answer
		assert joined(hapax, c, 3) == first
		again = hapax.call("POST", RUNS, {"definitionId": "calm", "input": {"customer": c, "v": 2}}, headers)
		assert again[0] == 200 and again[2] == answer[2], (answer, again)
		assert show(hapax, first)["input"]["v"] == 3


def test_with_a_signal_and_a_singleton(dir):
	for hapax, c in on_each_store(dir):
		first = made(hapax, c, 1)
		signal = {"signal": {"event": "go", "id": "e"}}
		assert start(hapax, c, 2, f"{c}/s", status=200, **signal)["run"]["id"] == first
		assert show(hapax, first)["input"]["v"] == 2 and by_key(hapax, f"{c}/s")["id"] == first
		assert start(hapax, c, 3, f"{c}/s", status=200, **signal)["duplicate"] is True
		assert show(hapax, first)["input"]["v"] == 2
		alone = made(hapax, c, 1, name="one")
		assert joined(hapax, c, 2, name="one") == alone
		hapax.json("POST", f"{RUNS}/{alone}/pause", {}, status=200)
		answer = start(hapax, c, 3, name="one", status=200)
		assert answer["run"]["id"] == alone and answer["inputDiffers"] is True, answer
		hapax.json("POST", f"{RUNS}/{first}/pause", {}, status=200)
		assert made(hapax, c, 3) != first and show(hapax, first)["input"]["v"] == 2


def test_hooks_and_schedules(dir):
	def deliver(hapax, id, customer):
		body = json.dumps({"id": id, "customer": customer}).encode()
		mac = hmac.new(b"s", body, hashlib.sha256).hexdigest()
		return hapax.json("POST", "/hooks/begin", body, headers=[("X-Signature", mac)], status=200)
	for hapax, c in on_each_store(dir):
		for n in range(3):
			assert deliver(hapax, f"{c}e{n}", c) == {"accepted": True, "duplicate": False}
		assert deliver(hapax, f"{c}e0", c)["duplicate"] is True
		run = by_key(hapax, f"hook:begin:{c}e0")
		assert run["input"]["v"] == f"{c}e2" and by_key(hapax, f"hook:begin:{c}e2")["id"] == run["id"], run
		schedule = f"s{c}"
		hapax.json("PUT", f"/api/v1/schedules/{schedule}", {"workflow": "calm", "input": {"customer": c, "v": 0}, "every": "1h"})
		hapax.json("POST", f"/api/v1/schedules/{schedule}/trigger", {})
		assert show(hapax, run["id"])["input"]["v"] == f"{c}e2"  # no start that is debounced
		assert joined(hapax, c, 7) == run["id"]


def test_it_begins_when_nobody_starts_and_at_the_latest_by_at_most(dir):
	service = Service()
	for hapax, c in on_each_store(dir, service):
		id = made(hapax, c, 1, name="quick")
		until(lambda: show(hapax, id)["status"] == "COMPLETED", "its end")
		late = made(hapax, c, 1, name="soon")
		n = itertools.count(2)
		def begun():
			start(hapax, c, next(n), name="soon")
			return show(hapax, late)["status"] != "PENDING"
		until(begun, "its beginning, while others start")
		until(lambda: show(hapax, late)["status"] == "COMPLETED", "its end")


def sent(service, c):
	return [json.loads(body)["input"] for _, _, body in list(service.calls) if json.loads(body)["input"]["c"] == c]


def starts_at_once(nodes, service, c, name, many=120):
	with concurrent.futures.ThreadPoolExecutor(16) as pool:
		answers = list(pool.map(lambda n: start(nodes[n % len(nodes)], c, n, f"{c}/{n}", name=name), range(many)))
	assert all("run" in a for a in answers), [a for a in answers if "run" not in a][:3]
	runs = {a["run"]["id"] for a in answers}
	assert sum(a["created"] for a in answers) == len(runs), runs
	for id in runs:
		until(lambda: show(nodes[0], id)["status"] == "COMPLETED", f"the end of {id}")
	calls = sent(service, c)
	assert len(calls) == len(runs), (calls, runs)
	inputs = {show(nodes[0], id)["input"]["v"]: id for id in runs}
	assert {call["v"] for call in calls} == set(inputs), (calls, inputs)
	for n, answer in enumerate(answers):
		assert by_key(nodes[-1], f"{c}/{n}", name)["id"] == answer["run"]["id"]
	for v, id in inputs.items():  # what it began with was one of its own starts
		assert answers[v]["run"]["id"] == id
	return runs


def test_many_at_once(dir):
	service = Service()
	for hapax, c in on_each_store(dir, service):
		starts_at_once([hapax], service, c, "quick")


def test_many_at_once_on_two_nodes(dir):
	if not PG:
		return
	service = Service()
	for n in "ab":
		(dir / n).mkdir()
	with serve(dir / "a", PG, service) as a, serve(dir / "b", PG, service) as b:
		starts_at_once([a, b], service, "both", "quick")


def test_killed_while_it_is_put_off(dir):
	service = Service()
	for i, store in enumerate(STORES):
		(dir / str(i)).mkdir()
		c = f"k{i}"
		with serve(dir / str(i), store, service) as hapax:
			made(hapax, c, 1, f"{c}/a", name="short")
			start(hapax, c, 2, f"{c}/b", name="short")
			last = by_key(hapax, f"{c}/b", "short")["id"]
			hapax.process.kill()
			hapax.process.wait()
		with serve(dir / str(i), store, service) as hapax:
			for key in "ab":
				run = until(lambda: (r := by_key(hapax, f"{c}/{key}", "short"))["status"] == "COMPLETED" and r, "its end")
			assert run["id"] == last and run["input"]["v"] == 2, run
			assert start(hapax, c, 3, f"{c}/b", name="short", status=200)["run"]["id"] == last
			assert [call["v"] for call in sent(service, c)] in ([2], [1, 2]), sent(service, c)


server.run(globals())
END
