#!/usr/bin/env bash
# What is said of functions beside their code, from outside: definitions of kind function, what they are searched by, functions as children of
# runs, other versions, and the clock of tests.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os, subprocess, urllib.parse
import server
from functions import API, RUNS, STORES, Scene, Worker, entry, on_every_store, serial, step, suspended
from server import Server, until, write

PREFIX = f"d{os.getpid()}x"  # on PostgreSQL definitions outlive a scene


def put(scene, status=200, **definition):
	name = definition.setdefault("workflow", f"{PREFIX}{next(serial)}")
	return name, scene.hapax.json("PUT", f"/api/v1/definitions/{name}", definition, status=status)


def function(scene, **more):
	return put(scene, kind="function", **more)[0]


def start(scene, name, status=201, **more):
	return scene.hapax.json("POST", RUNS, {"definitionId": name, **more}, status=status)["run"]["id"]


def run_of(scene, id):
	return scene.hapax.json("GET", f"{RUNS}/{id}", status=200)


def ends(scene, id, status):
	return until(lambda: (run := run_of(scene, id))["status"] == status and run, f"{id} to be {status}")


def found(scene, where):
	return [run["id"] for run in scene.hapax.json("GET", f"{RUNS}?where={urllib.parse.quote(where)}", status=200)["items"]]


def turn(scene, name, version="1", worker="w1", **more):
	w = Worker(scene.hapax, worker, name, version)
	w.claim(**more)
	return w


DONE = {"state": "completed", "output": {"ok": True}}
BROKEN = {"state": "failed", "error": {"code": "BROKE", "message": "it broke"}}


@on_every_store
def test_a_definition_is_checked_put_and_shown(scene):
	name = function(scene, timeout="2h")
	shown = scene.hapax.json("GET", f"/api/v1/definitions/{name}", status=200)
	assert shown["kind"] == "function" and shown["version"] == 1, shown
	assert [d["kind"] for d in scene.hapax.json("GET", "/api/v1/definitions")["items"] if d["name"] == name] == ["function"]
	bad = put(scene, status=422, kind="function", steps=[])[1]
	assert bad["code"] == "DEFINITION_INVALID" and "belongs to definitions of kind" in str(bad), bad
	_, other = put(scene, status=422, workflow=name, kind="run", steps=[{"name": "a", "type": "wait", "for": "1s"}])
	assert "cannot change its kind" in str(other), other
	status, head, picture = scene.hapax.call("GET", f"/api/v1/definitions/{name}/graph")
	assert status == 200 and b"its steps are code" in picture, picture[:300]


def test_check_knows_the_kind(dir):
	write(dir / "workflows/f.json", {"workflow": "f", "kind": "function", "on_failure": "compensate"})
	write(dir / "bad/g.json", {"workflow": "g", "kind": "function", "on_failur": "compensate"})
	check = lambda folder: subprocess.run([server.HAPAX, "check", "--strict", folder], cwd=dir, capture_output=True, text=True)
	good, bad = check("workflows"), check("bad")
	assert good.returncode == 0, good.stdout + good.stderr
	assert bad.returncode != 0 and 'did you mean "on_failure"' in bad.stdout + bad.stderr, bad
	with Server(dir, "serve", "--workflows", "workflows") as hapax:
		assert hapax.json("POST", RUNS, {"definitionId": "f"}, status=201)["run"]["status"] == "PENDING"


@on_every_store
def test_it_is_started_before_anybody_polls(scene):
	name = function(scene, retry={"max_attempts": 7, "initial": "2s", "factor": 1.5}, attributes={"customer": ".input.customer"})
	id = start(scene, name, input={"customer": name})
	w = turn(scene, name)
	assert w.turn["run"] == id
	assert w.turn["retry"] == {"maxAttempts": 7, "initialMs": 2000, "factor": 1.5, "maxMs": 300000, "jitter": True}, w.turn["retry"]
	assert found(scene, f'customer == "{name}"') == [id] and run_of(scene, id)["attributes"] == {"customer": name}
	assert run_of(scene, id)["definitionVersion"] == 0
	w.write(end=DONE)
	assert run_of(scene, id)["status"] == "COMPLETED"


@on_every_store
def test_a_run_keeps_what_was_said_at_its_start(scene):
	name = function(scene, retry={"max_attempts": 2})
	start(scene, name)
	put(scene, workflow=name, kind="function", retry={"max_attempts": 9})
	assert turn(scene, name).turn["retry"]["maxAttempts"] == 2
	start(scene, name)
	assert turn(scene, name).turn["retry"]["maxAttempts"] == 9


@on_every_store
def test_a_failure_is_undone(scene):
	name = function(scene, on_failure="compensate")
	id = start(scene, name)
	w = turn(scene, name)
	w.write(step("a", output=1), entry("compensate", "a"), step("b", "failed", error={"code": "NO"}), end={**BROKEN, "step": "b"})
	assert run_of(scene, id)["status"] == "CANCELLING" and run_of(scene, id)["error"]["code"] == "BROKE"
	w = turn(scene, name)
	assert w.turn["cancelled"] is True
	w.write({"kind": "undo", "name": "a", "n": 0, "state": "done"}, end={"state": "undone"})
	done = run_of(scene, id)
	assert done["status"] == "CANCELLED" and done["error"]["code"] == "BROKE", done
	id = start(scene, name)
	turn(scene, name).write(end=BROKEN)
	assert run_of(scene, id)["status"] == "CANCELLED"
	plain = function(scene)
	id = start(scene, plain)
	turn(scene, plain).write(end=BROKEN)
	assert run_of(scene, id)["status"] == "FAILED"


@on_every_store
def test_its_time_is_over(scene):
	name = function(scene, timeout="1s")
	waiting = start(scene, name)  # nobody takes its turn
	assert ends(scene, waiting, "CANCELLED")["error"]["code"] == "TIMEOUT"
	asleep = start(scene, name)
	w = turn(scene, name)
	w.write(entry("sleep", "s", forMs=86400000), end=suspended(("sleep", "s")))
	assert ends(scene, asleep, "CANCELLED")["error"]["code"] == "TIMEOUT"
	at_work = start(scene, name)
	w = turn(scene, name)
	w.write(step("a", "begun"), entry("compensate", "a"))
	until(lambda: run_of(scene, at_work)["status"] == "CANCELLING", "its time to be over")
	w.refused("CANCELLED", step("b", "begun"))
	w.write(step("a"), {"kind": "undo", "name": "a", "n": 0, "state": "done"}, end={"state": "undone"})
	assert run_of(scene, at_work)["status"] == "CANCELLED"


@on_every_store
def test_the_lease_is_that_of_the_definition(scene):
	name = function(scene, lease="3s")
	start(scene, name)
	claim = {"worker": "w1", "functions": [{"name": name, "version": "1"}, {"name": name + "b", "version": "1"}], "max": 1}
	turn = until(lambda: scene.hapax.json("POST", f"{API}/claim", claim, status=200)["turns"], "a turn")[0]
	run = run_of(scene, turn["run"])
	assert run["status"] == "RUNNING"
	until(lambda: run_of(scene, turn["run"])["status"] == "PENDING", "the lease to be over", seconds=40)  # not the 60 s of the configuration


@on_every_store
def test_what_the_code_tells_is_found(scene):
	w = scene.begin()
	mark = f"m{next(serial)}{PREFIX}"
	w.write(entry("attribute", "mark", value=mark), entry("attribute", "total", value=120.5), step("a", "begun"))
	assert found(scene, f'mark == "{mark}"') == [w.turn["run"]]
	assert found(scene, f'mark == "{mark}" and total > 120') == [w.turn["run"]] and found(scene, f'mark == "{mark}" and total > 121') == []
	w.write(step("a"), entry("attribute", "total", n=1, value=7), entry("attribute", "mark two", value="no name"))
	assert found(scene, f'mark == "{mark}" and total < 8') == [w.turn["run"]]
	assert scene.show(w)["attributes"] == {"mark": mark, "total": 7}, scene.show(w)
	w.write(entry("attribute", "mark", n=1, value=None), end=DONE)
	assert scene.show(w)["attributes"] == {"total": 7}


def parent(scene, *steps, **more):
	return put(scene, kind="run", steps=list(steps), **more)[0]


@on_every_store
def test_a_step_of_a_run_is_a_function(scene):
	defined = function(scene, on_failure="compensate", attributes={"part": ".input.part"})
	polled = scene.worker()
	name = parent(scene, {"name": "one", "type": "child", "workflow": defined, "input": "{part: .input.part}", "save_as": "one"},
		{"name": "two", "type": "child", "workflow": polled.function, "input": "{n: 2}", "save_as": "two"}, output="{one: .state.one, two: .state.two}")
	id = start(scene, name, input={"part": name})
	w = turn(scene, defined)
	assert w.turn["input"] == {"part": name} and w.turn["key"] == f"{id}/one/0", w.turn
	assert run_of(scene, w.turn["run"])["parent"]["run"] == id and found(scene, f'part == "{name}"') == [w.turn["run"]]
	w.write(end={"state": "completed", "output": 1})
	polled.claim()
	assert polled.turn["input"] == {"n": 2}
	polled.write(end={"state": "completed", "output": 2})
	assert ends(scene, id, "COMPLETED")["output"] == {"one": 1, "two": 2}


@on_every_store
def test_nobody_knows_such_a_name(scene):
	id = start(scene, parent(scene, {"name": "one", "type": "child", "workflow": f"{PREFIX}nobody"}))
	failed = ends(scene, id, "FAILED")
	assert failed["error"]["code"] == "NOT_FOUND" and "nobody polls" in failed["error"]["message"], failed


@on_every_store
def test_a_map_over_a_function(scene):
	w = scene.worker()
	name = parent(scene, {"name": "all", "type": "map", "over": ".input.items", "workflow": w.function, "input": "{item: .item}", "concurrency": 3, "save_as": "all"},
		output="{all: .state.all}")
	id = start(scene, name, input={"items": list(range(7))})
	for _ in range(7):
		w.claim()
		assert len(scene.hapax.json("GET", f"{RUNS}?parent={id}", status=200)["items"]) <= 7
		w.write(end={"state": "completed", "output": w.turn["input"]["item"] * 10})
	assert ends(scene, id, "COMPLETED")["output"] == {"all": [0, 10, 20, 30, 40, 50, 60]}


@on_every_store
def test_failure_goes_through_the_tree(scene):
	w = scene.worker()
	other, third = Worker(scene.hapax, "w2", w.function), Worker(scene.hapax, "w3", w.function)
	name = parent(scene, {"name": "all", "type": "map", "over": "[1, 2, 3]", "workflow": w.function, "concurrency": 3})
	id = start(scene, name)
	for worker in (w, other, third):
		worker.claim()
	third.write(entry("event", "e", event="go"), end=suspended(("event", "e")))
	other.write(step("a", "begun"))
	w.write(end=BROKEN)
	assert ends(scene, third.turn["run"], "FAILED")["error"]["code"] == "SIBLING_FAILED"
	assert until(lambda: other.write()["paused"], "the word of its parent")
	other.refused("WRONG_STATUS", step("b", "begun"))
	other.write(step("a"), end={"state": "released"})
	assert run_of(scene, other.turn["run"])["error"]["code"] == "SIBLING_FAILED"
	assert ends(scene, id, "FAILED")["error"]["code"] == "CHILD_FAILED"
	scene.hapax.json("POST", f"{RUNS}/{id}/retry", {}, status=200)
	again = {}
	for _ in range(3):
		w.claim()
		again[w.turn["run"]] = [e["name"] for e in w.turn["journal"]]
		w.write(*([] if "e" not in again[w.turn["run"]] else [entry("drop", "e")]), end=DONE)
	assert again == {**again, other.turn["run"]: ["a"], third.turn["run"]: ["e"]}, again
	ends(scene, id, "COMPLETED")


@on_every_store
def test_cancel_goes_through_the_tree(scene):
	w = scene.worker()
	name = parent(scene, {"name": "one", "type": "child", "workflow": w.function}, {"name": "go", "type": "external_event", "event": "go"})
	id = start(scene, name)
	w.claim()
	child = w.turn["run"]
	w.write(step("a", output=1), entry("compensate", "a"), end=DONE)
	until(lambda: run_of(scene, id)["currentStep"] == "go", "the step after it")
	scene.hapax.json("POST", f"{RUNS}/{id}/cancel", {}, status=202)
	w.claim()
	assert w.turn["run"] == child and w.turn["cancelled"] is True
	assert run_of(scene, id)["status"] == "CANCELLING", "it waits for its child to be undone"
	w.write({"kind": "undo", "name": "a", "n": 0, "state": "done"}, end={"state": "undone"})
	ends(scene, id, "CANCELLED")
	assert run_of(scene, child)["status"] == "CANCELLED"


@on_every_store
def test_another_version_goes_on(scene):
	w = scene.begin()
	w.write(step("a"))
	migrate = lambda status, **body: scene.verb(w, "migrate", body, status=status)
	assert migrate(409, functionVersion="2")["code"] == "WRONG_STATUS"
	w.write(end={"state": "released"})
	assert migrate(422, definitionVersion=2)["code"] == "CANNOT_MIGRATE"
	assert migrate(400)["code"] == "VALIDATION_ERROR" and migrate(400, functionVersion="2", definitionVersion=2)["code"] == "VALIDATION_ERROR"
	assert migrate(200, functionVersion="2", dryRun=True)["dryRun"] is True and scene.why(w) == "FUNCTION_WORKER"
	assert migrate(200, functionVersion="2")["functionVersion"] == "2"
	assert scene.why(w) == "FUNCTION_UNPOLLED" and w.poll()["turns"] == []
	two = Worker(scene.hapax, "w2", w.function, "2")
	two.claim()
	assert two.turn["version"] == "2" and two.turn["from"] == 0 and [e["name"] for e in two.turn["journal"]] == ["a"]
	two.write(end=DONE)
	cli = subprocess.run([server.HAPAX, "run", "migrate", w.turn["run"], "--to-code", "3", "--server", f"http://127.0.0.1:{scene.hapax.port}"],
		capture_output=True, text=True)
	assert cli.returncode == 5 and "ended" in cli.stderr, cli
	run = start(scene, parent(scene, {"name": "go", "type": "external_event", "event": "go"}))
	assert scene.hapax.json("POST", f"{RUNS}/{run}/migrate", {"functionVersion": "2"}, status=422)["code"] == "CANNOT_MIGRATE"


CLOCK = "/api/v1/test-clock"


def test_time_is_moved_in_tests_alone(dir):
	refused = subprocess.run([server.HAPAX, "serve", "--db", "sqlite:h.db", "--test-clock", "--listen", "127.0.0.1:0"], cwd=dir, capture_output=True, text=True)
	assert refused.returncode == 78 and "sqlite::memory:" in refused.stderr, refused
	assert not (dir / "h.db").exists()
	with Server(dir, "serve", "--db", "sqlite::memory:") as hapax:
		assert hapax.call("POST", CLOCK, {"skipMs": 1})[0] == 404
	write(dir / "workflows/nap.json", {"workflow": "nap", "kind": "run", "steps": [{"name": "a", "type": "wait", "for": "9d"}]})
	with Server(dir, "serve", "--db", "sqlite::memory:", "--test-clock", "--workflows", "workflows") as hapax:
		now = lambda: hapax.json("POST", CLOCK, {"skipMs": 0}, status=200)["now"]
		for bad in ({}, {"skipMs": -1}, {"skipMs": "1"}, {"toNext": False}, {"other": 1}):
			assert hapax.call("POST", CLOCK, bad)[0] == 400, bad
		still = hapax.json("POST", CLOCK, {"toNext": True}, status=200)
		assert still["movedMs"] == 0 and still["rests"] is True, "nothing is waited for"
		w = Worker(hapax, "w", "f")
		w.poll()
		id = hapax.json("POST", RUNS, {"definitionId": "f"}, status=201)["run"]["id"]
		still = hapax.json("POST", CLOCK, {"toNext": True}, status=200)
		assert still["movedMs"] == 0 and still["rests"] is False, "a turn is there"
		w.claim()
		assert hapax.json("POST", CLOCK, {"toNext": True}, status=200)["movedMs"] == 0, "a worker has it"
		w.write(entry("sleep", "s", forMs=2 * 86400000), end=suspended(("sleep", "s")))
		moved = hapax.json("POST", CLOCK, {"toNext": True}, status=200)
		assert 86400000 < moved["movedMs"] <= 2 * 86400000, moved
		w.claim()
		assert [e["state"] for e in w.turn["journal"]] == ["done"]
		w.write(step("a", "begun"))
		hapax.json("POST", CLOCK, {"skipMs": 61000}, status=200)  # the lease is over by that clock
		until(lambda: hapax.json("GET", f"{RUNS}/{id}")["steps"][1]["status"] == "UNKNOWN", "its lease to be over")
		nap = hapax.json("POST", RUNS, {"definitionId": "nap"}, status=201)["run"]["id"]
		until(lambda: hapax.json("GET", f"{RUNS}/{nap}")["status"] == "WAITING", "the run to wait")
		until(lambda: hapax.json("POST", CLOCK, {"toNext": True}, status=200)["movedMs"] > 8 * 86400000, "time to move")
		until(lambda: hapax.json("GET", f"{RUNS}/{nap}")["status"] == "COMPLETED", "the run to end")
		assert now() > moved["now"]


@on_every_store
def test_turns_are_within_their_limits(scene):
	name = function(scene, limits={"concurrency": {"by": ".input.customer", "max": 1}, "rate": {"by": ".input.customer", "max": 2, "per": "1h"}})
	ids = [start(scene, name, input={"customer": "ada"}) for _ in range(3)]
	other = start(scene, name, input={"customer": "bob"})
	first = turn(scene, name)
	assert first.turn["run"] == ids[0], first.turn
	bobs = turn(scene, name)
	assert bobs.turn["run"] == other, bobs.turn
	assert not Worker(scene.hapax, "w2", name).poll(wait=100)["turns"]
	why = scene.hapax.json("GET", f"/api/v1/why/{ids[1]}", status=200)
	assert "slot" in why["reason"].lower() and "ada" in str(why), why
	first.write(end=DONE)
	second = turn(scene, name)
	assert second.turn["run"] == ids[1], second.turn
	second.write(end=DONE)
	assert not Worker(scene.hapax, "w2", name).poll(wait=100)["turns"], "the rate is two an hour"
	why = scene.hapax.json("GET", f"/api/v1/why/{ids[2]}", status=200)
	assert "rate" in str(why), why
	scene.hapax.json("POST", f"{RUNS}/{ids[2]}/cancel", {}, status=200)
	bobs.write(end=DONE)


@on_every_store
def test_starts_are_put_off_and_answered_with_one(scene):
	name = function(scene, limits={"debounce": {"for": "1s"}})
	id = start(scene, name, input={"n": 1})
	again = scene.hapax.json("POST", RUNS, {"definitionId": name, "input": {"n": 2}}, status=200)
	assert again["run"]["id"] == id and not again["created"], again
	late = turn(scene, name)
	assert late.turn["run"] == id and late.turn["input"] == {"n": 2}, late.turn
	late.write(end=DONE)
	alone = function(scene, limits={"singleton": {}})
	id = start(scene, alone)
	assert scene.hapax.json("POST", RUNS, {"definitionId": alone}, status=200)["run"]["id"] == id
	turn(scene, alone).write(end=DONE)
	assert start(scene, alone) != id


@on_every_store
def test_a_run_is_kept_as_its_definition_says(scene):
	name = function(scene, retention="1s")
	id = start(scene, name)
	turn(scene, name).write(end=DONE)
	until(lambda: scene.hapax.call("GET", f"{RUNS}/{id}")[0] in (404, 410), "the run to go")


server.run(globals(), at_once=4)
END
