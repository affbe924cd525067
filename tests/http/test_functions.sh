#!/usr/bin/env bash
# Functions from outside: every exchange of a worker with the engine, what it refuses, and what the verbs of a run do to one.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import concurrent.futures, json, os, subprocess, threading
import server
from functions import API, RUNS, STORES, Scene, Worker, entry, on_every_store, serial, step, suspended
from server import Server, until, write


@on_every_store
def test_what_is_polled_for_can_be_started(scene):
	assert scene.hapax.json("POST", RUNS, {"definitionId": "nobody"}, status=404)["code"] == "NOT_FOUND"
	w = scene.worker()
	run = scene.start(w, input={"a": 1}, idempotencyKey=w.function)
	again = scene.hapax.json("POST", RUNS, {"definitionId": w.function, "idempotencyKey": w.function}, status=200)
	assert again["created"] is False and again["run"]["id"] == run
	turn = w.claim()
	assert {k: turn[k] for k in ("run", "function", "version", "key", "fence", "seq", "input", "attempt", "from", "journal", "more", "cancelled")} == {
		"run": run, "function": w.function, "version": "1", "key": w.function, "fence": 1, "seq": 0, "input": {"a": 1}, "attempt": 1,
		"from": 0, "journal": [], "more": False, "cancelled": False}, turn
	assert turn["retry"]["maxAttempts"] == 3 and w.poll()["turns"] == []
	assert scene.status(w) == "RUNNING" and scene.why(w) == "RUN_CLAIMED" and scene.show(w)["owner"] == w.name
	assert w.write(end={"state": "completed", "output": {"b": 2}})["leaseUntil"] is None
	done = scene.show(w)
	assert done["status"] == "COMPLETED" and done["output"] == {"b": 2} and done["completedAt"] and done["definitionId"] == w.function
	assert [(h["to"], h["worker"]) for h in scene.hapax.json("GET", f"{RUNS}/{run}/history")["items"]] == [("PENDING", None), ("RUNNING", w.name), ("COMPLETED", None)]
	assert done["owner"] is None and [e["worker"] for e in scene.hapax.json("GET", f"/api/v1/evidence/{run}")["history"]] == [None, w.name, None]


def test_a_definition_of_another_kind_wins(dir):
	write(dir / "workflows/taken.json", {"workflow": "taken", "kind": "run", "steps": [{"name": "a", "type": "wait", "for": "1ms"}]})
	with Server(dir, "serve", "--workflows", "workflows") as hapax:
		assert Worker(hapax, "w", "taken").poll(status=409)["code"] == "NAME_TAKEN"


@on_every_store
def test_a_claim_waits_for_a_turn(scene):
	w = scene.worker()
	with concurrent.futures.ThreadPoolExecutor(1) as pool:
		waiting = pool.submit(w.poll, wait=25000)
		run = scene.start(w)
		assert [t["run"] for t in waiting.result()["turns"]] == [run]


@on_every_store
def test_one_turn_for_many_that_poll(scene):
	w = scene.worker()
	for _ in range(20):
		scene.start(w)
	with concurrent.futures.ThreadPoolExecutor(8) as pool:
		turns = [t for a in pool.map(lambda n: Worker(scene.hapax, f"p{n}", w.function).poll(max=12), range(8)) for t in a["turns"]]
	turns += w.poll(max=12)["turns"]
	assert len(turns) == len({t["run"] for t in turns}) == 20, turns


@on_every_store
def test_the_journal_is_a_sequence(scene):
	w = scene.begin()
	first = w.body(step("a", "begun", effect="claimed"))
	assert w.send(first)["seq"] == 1
	assert w.send(first) == {**w.send(first)} and w.seq == 1, "the same bytes are answered again"
	assert w.send({**first, "entries": [step("b", "begun")]}, status=409)["code"] == "SEQ_CONFLICT"
	assert w.send({**w.body(step("b", "begun")), "seq": 9}, status=409)["code"] == "SEQ_CONFLICT"
	assert w.send({**w.body(), "worker": "w2"}, status=409)["code"] == "STALE_FENCE"
	assert w.send({**w.body(), "fence": 7}, status=409)["code"] == "STALE_FENCE"
	answer = w.write(step("a", output={"x": 1}), step("a", n=1, effect="keyed", output=2), entry("value", "v", output=[3]))
	assert [(e["name"], e["n"], e["seq"], "output" in e) for e in answer["completed"]] == [("a", 0, 2, False), ("a", 1, 3, False), ("v", 0, 4, False)], answer
	assert [(e["i"], e["seq"], e["state"], e["output"]) for e in w.journal()["journal"]] == [(0, 2, "done", {"x": 1}), (1, 3, "done", 2), (2, 4, "done", [3])]
	assert [s["name"] for s in scene.show(w)["steps"]] == ["a", "a#1", "v"]
	last = w.body(end={"state": "released"})
	assert w.send(last)["seq"] == 5
	w.seq = 4
	assert w.send(last)["seq"] == 5, "the end again"
	w.seq = 4
	assert w.send(w.body(), status=409)["code"] == "STALE_FENCE", "anything else after the end"
	assert scene.status(w) == "PENDING" and scene.why(w) == "FUNCTION_WORKER"


@on_every_store
def test_entries_that_the_journal_does_not_take(scene):
	w = scene.begin()
	w.write(step("a", "begun", effect="claimed"))
	for bad in (step("a", "begun"), step("b", n=1), entry("sleep", "a", forMs=5), entry("sleep", "s"), entry("sleep", "s", forMs=0), step("b", "nowhere"),
			entry("event", "e"), entry("compensate", "c"), entry("drop", "a"), entry("undo", "a", state="begun"), step("b", "begun", output=1),
			step("b", "begun", onunknown="hold"), entry("party", "p"), step("", "begun"), {"kind": "step"}, step("b", "done", retryAfterMs=5)):
		w.refused("BAD_ENTRY", bad)
	w.refused("BAD_ENTRY", step("good"), step("a", "begun"))
	w.refused("STEP_OPEN", end={"state": "completed"})
	w.refused("STEP_OPEN", end={"state": "released"})
	w.write(step("a"))
	w.refused("BAD_ENTRY", step("a", "failed"))
	w.refused("NOTHING_TO_WAIT_FOR", end={"state": "suspended"})
	w.refused("NOTHING_TO_WAIT_FOR", end=suspended(("sleep", "never")))
	w.refused("NOTHING_TO_WAIT_FOR", end=suspended(("step", "a")))
	w.refused("BAD_ENTRY", end={"state": "undone"})


@on_every_store
def test_a_journal_is_bounded(scene):
	w = scene.begin()
	text = "x" * ((1 << 20) - 2)
	for n in range(23):
		w.write(step("a", n=n, effect="keyed", output=text))
	w.refused("JOURNAL_FULL", step("a", n=23, effect="keyed", output=text))
	w.write(end={"state": "released"})
	turn, seen = w.claim(), []
	seen += turn["journal"]
	assert turn["more"] and 3 <= len(seen) <= 5
	while True:
		page = w.journal(after=seen[-1]["seq"])
		seen += page["journal"]
		if not page["more"]:
			break
	assert [e["n"] for e in seen] == list(range(23)) and page["seq"] == turn["seq"]


@on_every_store
def test_a_warm_worker_gets_what_is_new(scene):
	w = scene.begin()
	w.write(step("a"), entry("sleep", "nap", forMs=50), end=suspended(("sleep", "nap")))
	turn = w.claim(warm=[{"run": w.turn["run"], "seq": w.seq}])
	assert turn["from"] == 3 and [(e["name"], e["state"]) for e in turn["journal"]] == [("nap", "done")], turn
	w.write(end={"state": "released"})
	assert w.claim(warm=[{"run": w.turn["run"], "seq": 99}])["from"] == 0, "nobody knows what has not been"


@on_every_store
def test_a_heartbeat_keeps_the_turn_and_never_shortens_it(scene):
	w = scene.begin()
	long = w.write(leaseMs=600000)["leaseUntil"]
	assert w.write(leaseMs=100)["leaseUntil"] == long and w.seq == 0
	assert w.send({**w.body(), "fence": 2}, status=409)["code"] == "STALE_FENCE"


@on_every_store
def test_a_lease_that_lapses_leaves_what_was_begun_unknown(scene):
	w = scene.begin(lease=100)
	w.write(step("a", "begun", effect="keyed"), step("b", effect="keyed"), leaseMs=100)
	other = Worker(scene.hapax, "w2", w.function)
	turn = other.claim()
	assert turn["attempt"] == 2 and [(e["name"], e["state"]) for e in turn["journal"]] == [("b", "done"), ("a", "unknown")], turn
	assert w.write(step("a"), status=409)["code"] == "STALE_FENCE"
	rows = [(h["worker"], h["reason"]) for h in scene.hapax.json("GET", f"{RUNS}/{turn['run']}/history")["items"]]
	assert rows == [(None, None), (w.name, None), (None, "the lease before was over"), ("w2", None)], rows
	other.write(step("a", "begun"))
	assert other.journal()["journal"][-1]["attempt"] == 2
	other.write(step("a", "unknown"), end=suspended(("step", "a")))
	assert scene.why(other) == "RUN_UNKNOWN" and scene.attention(other) == ["unknown_step"], "what two do not know a person has to"


@on_every_store
def test_a_claimed_step_that_is_unknown_is_held(scene):
	w = scene.begin(lease=100)
	w.write(step("pay it", "begun", effect="claimed"), leaseMs=100)
	until(lambda: scene.status(w) == "WAITING", "the lapse")
	assert w.poll()["turns"] == [] and scene.why(w) == "RUN_UNKNOWN" and scene.attention(w) == ["unknown_step"]
	assert scene.show(w)["steps"][0]["status"] == "UNKNOWN"
	scene.verb(w, "steps/nothing/resolve", {"outcome": "done"}, status=404)
	assert 'did you mean "pay it"?' in scene.verb(w, "steps/pya%20it/resolve", {"outcome": "done"}, status=404)["detail"]
	scene.verb(w, "steps/pay%20it/resolve", {"outcome": "not_done"})
	turn = w.claim(warm=[{"run": w.turn["run"], "seq": 2}])
	assert turn["from"] == 0 and turn["journal"][0]["retryAfterMs"] == 0 and "key" not in turn["journal"][0], "begun again with the same key"
	w.write(step("pay it", "begun", effect="claimed"))
	w.write(step("pay it"), end={"state": "completed"})
	assert scene.status(w) == "COMPLETED"


@on_every_store
def test_ten_lapses_in_a_row_are_held(scene):
	w = scene.worker()
	scene.start(w)
	for n in range(10):
		assert w.claim(lease=100)["attempt"] == n + 1
	until(lambda: scene.status(w) == "WAITING", "the tenth lapse")
	assert scene.why(w) == "FUNCTION_HELD" and scene.attention(w) == ["held_function"] and scene.show(w)["error"]["code"] == "LAPSED"
	scene.verb(w, "retry")
	assert w.claim()["attempt"] == 1
	w.write(end={"state": "completed"})


@on_every_store
def test_a_step_is_tried_again_when_its_time_comes(scene):
	w = scene.begin()
	w.write(step("a", "failed", effect="keyed", retryAfterMs=100, error={"message": "busy"}), end=suspended(("step", "a")))
	assert scene.status(w) in ("WAITING", "PENDING")
	turn = w.claim()
	assert turn["journal"][0]["state"] == "failed" and turn["journal"][0]["retryAfterMs"] == 0
	w.write(step("a", output=1), end={"state": "completed", "output": 1})
	assert scene.show(w)["steps"][0]["attempt"] == 2


@on_every_store
def test_events_and_decisions(scene):
	w = scene.begin()
	scene.verb(w, "events/pay", {"id": "1", "data": 1}, status=202)
	scene.verb(w, "events/pay", {"id": "2", "data": 2}, status=202)
	assert scene.verb(w, "events/pay", {"id": "1", "data": 1}, status=200)["duplicate"] is True
	answer = w.write(entry("event", "p", event="pay"), entry("event", "p", n=1, event="pay"), entry("event", "p", n=2, event="pay", timeoutMs=700))
	assert [(e["n"], e["output"]) for e in answer["completed"]] == [(0, 1), (1, 2)], "the oldest first"
	w.write(entry("approval", "ok?"), end=suspended(("approval", "ok?")))
	assert scene.why(w) == "RUN_APPROVAL" and scene.attention(w) == ["approval"]
	shown = scene.show(w)
	assert [r["currentStep"] for r in scene.hapax.json("GET", RUNS + "?limit=500")["items"] if r["id"] == shown["id"]] == [shown["currentStep"]] == ["p#2"], "a list says where it stands, too"
	assert scene.verb(w, "approvals/what", {"decision": "approve"}, status=404)["detail"].endswith('; there is "ok?"'), "what could have been meant"
	scene.verb(w, "approvals/ok%3F", {"decision": "reject", "by": "ada"})
	assert scene.verb(w, "approvals/ok%3F", {"decision": "approve"}, status=409)["code"] == "WRONG_STATUS"
	w.claim()
	until(lambda: all(e["state"] != "open" for e in w.journal()["journal"]), "the timeout")
	ended = {(e["name"], e["n"]): e for e in w.journal()["journal"]}
	assert ended["ok?", 0]["output"] == {"decision": "reject", "by": "ada", "comment": None} and ended["p", 2]["error"]["code"] == "TIMEOUT"


@on_every_store
def test_a_race_and_its_losers(scene):
	w = scene.begin()
	w.write(entry("sleep", "s", forMs=50), entry("event", "e", event="x"), end=suspended(("sleep", "s"), ("event", "e"), any=True))
	w.claim()
	scene.verb(w, "events/x", {"id": "1", "data": 7}, status=202)
	w.write(entry("drop", "e"))
	assert [(e["name"], e["state"]) for e in w.journal()["journal"] if e["kind"] == "event"] == [("e", "dropped")]
	assert w.write(entry("event", "e", n=1, event="x"))["completed"][0]["output"] == 7, "what was not seen goes back"
	w.refused("NOTHING_TO_WAIT_FOR", end=suspended(("event", "e")))
	w.refused("BAD_ENTRY", entry("drop", "s"))


@on_every_store
def test_all_is_due_when_one_has_failed(scene):
	w = scene.begin()
	w.write(entry("event", "a", event="a", timeoutMs=50), entry("event", "b", event="b"), end=suspended(("event", "a"), ("event", "b")))
	assert [e["state"] for e in w.claim()["journal"]] == ["open", "failed"]


@on_every_store
def test_children(scene):
	w, kid = scene.begin(), scene.worker("k")
	answer = w.write(entry("child", "c", workflow=kid.function, input={"z": 1}), entry("child", "d", workflow="nobody's"))
	assert [(e["name"], e["error"]["code"]) for e in answer["completed"]] == [("d", "NOT_FOUND")], answer
	w.write(end=suspended(("child", "c")))
	turn = kid.claim()
	assert turn["input"] == {"z": 1} and turn["key"] == f"{w.turn['run']}/c/0"
	assert scene.hapax.json("GET", f"{RUNS}/{turn['run']}")["parent"] == {"run": w.turn["run"], "step": "c", "n": 0}
	kid.write(end={"state": "completed", "output": {"y": 2}})
	assert w.claim()["journal"][-1]["output"] == {"y": 2}
	w.write(entry("child", "c", n=1, workflow=kid.function), end=suspended(("child", "c", 1)))
	kid.claim()
	kid.write(end={"state": "failed", "error": {"code": "NO", "message": "no"}})
	failed = w.claim()["journal"][-1]
	assert failed["error"]["code"] == "CHILD_FAILED" and failed["error"]["cause"]["code"] == "NO", failed
	w.write(entry("child", "c", n=2, workflow=kid.function))
	kid.claim()
	w.write(entry("drop", "c", n=2), end={"state": "completed"})
	until(lambda: scene.status(kid) in ("CANCELLING", "CANCELLED"), "the word to be heard")
	assert kid.write()["cancelled"] is True
	kid.write(end={"state": "undone"})
	assert scene.status(kid) == "CANCELLED"


@on_every_store
def test_a_failure_and_its_retry(scene):
	w = scene.begin()
	w.write(step("a"), step("b", "failed", error={"code": "DECLINED", "message": "card declined"}),
		end={"state": "failed", "error": {"code": "DECLINED", "message": "card declined"}, "step": "b"})
	run = scene.show(w)
	assert run["status"] == "FAILED" and run["error"]["code"] == "DECLINED" and run["error"]["step"] == "b" and scene.attention(w) == ["failed_run"]
	scene.verb(w, "retry")
	begun = w.claim(warm=[{"run": run["id"], "seq": w.seq}])
	assert begun["from"] == 0 and begun["journal"][-1]["key"] == f"{run['id']}/b/0/1", begun
	w.write(step("b"), end={"state": "completed"})
	assert scene.show(w)["error"] is None
	w = scene.begin()
	w.write(step("b", "failed"), step("c"), end={"state": "failed", "step": "b"})
	assert scene.verb(w, "retry", status=409)["code"] == "WRONG_STATUS", "entries follow its end"


@on_every_store
def test_cancel_undoes(scene):
	w = scene.begin()
	w.write(step("a", output=1), entry("compensate", "a"), entry("sleep", "s", forMs=100000), step("b", "begun"))
	assert scene.verb(w, "cancel", status=202)["status"] == "CANCELLING"
	assert w.write()["cancelled"] is True
	w.refused("CANCELLED", step("c", "begun"))
	w.refused("CANCELLED", entry("sleep", "z", forMs=5))
	w.write(step("b"), entry("compensate", "b"))
	w.refused("CANCELLED", end={"state": "completed"})
	w.write(end={"state": "released"})
	assert w.claim()["cancelled"] is True
	w.refused("BAD_ENTRY", end={"state": "undone"})
	w.write({**step("b", "begun"), "kind": "undo"})
	w.write({**step("b"), "kind": "undo"}, {**step("a", "failed", error={"message": "stuck"}), "kind": "undo"}, end={"state": "undone"})
	assert scene.status(w) == "CANCELLING" and scene.attention(w) == ["failed_compensation"]
	scene.verb(w, "retry")
	w.claim()
	w.write({**step("a"), "kind": "undo"}, end={"state": "undone"})
	run = scene.show(w)
	assert run["status"] == "CANCELLED" and all(s.get("compensatedAt") for s in run["steps"] if s["name"] in "ab"), run
	assert {s["name"]: s["status"] for s in run["steps"]}["s"] == "SKIPPED"


def undo(name, state="done", **more):
	return {**step(name, state, **more), "kind": "undo"}


@on_every_store
def test_an_undo_that_failed_in_a_call_of_its_own_is_held(scene):
	w = scene.begin()
	w.write(step("a"), entry("compensate", "a"))
	scene.verb(w, "cancel", status=202)
	w.write()
	w.write(undo("a", "failed", error={"message": "stuck"}))
	w.write(end={"state": "undone"})
	assert scene.status(w) == "CANCELLING" and w.poll()["turns"] == [] and scene.show(w)["error"]["code"] == "UNDO_FAILED"
	scene.verb(w, "retry")
	w.claim()
	w.write(undo("a"))
	w.write(end={"state": "undone"})
	assert scene.status(w) == "CANCELLED"


@on_every_store
def test_a_compensation_that_is_said_before_its_step_is_done_is_owed(scene):
	w = scene.begin()
	w.write(step("a", "begun"), entry("compensate", "a"))
	scene.verb(w, "cancel", status=202)
	w.write()
	w.refused("BAD_ENTRY", step("a"), end={"state": "undone"})
	w.write(step("a"), end={"state": "released"})
	assert scene.status(w) == "CANCELLING" and w.claim()["cancelled"] is True
	w.write(undo("a"), end={"state": "undone"})
	assert scene.status(w) == "CANCELLED"
	w = scene.begin(lease=200)
	w.write(step("a", "begun"), entry("compensate", "a"))
	until(lambda: scene.show(w)["steps"][0]["status"] == "UNKNOWN", "the lapse")
	scene.verb(w, "cancel", status=202)
	scene.verb(w, "steps/a/resolve", {"outcome": "done"})
	assert scene.status(w) == "CANCELLING" and w.claim()["cancelled"] is True, "what a person says is done is undone"


@on_every_store
def test_the_outcome_of_another_try_is_taken_after_a_cancel(scene):
	w = scene.begin()
	w.write(step("a", "failed", effect="keyed", retryAfterMs=1), entry("compensate", "a"))
	scene.verb(w, "cancel", status=202)
	w.write()
	w.write(step("a", effect="keyed"))
	w.refused("BAD_ENTRY", end={"state": "undone"})
	w.write(undo("a"), end={"state": "undone"})
	w = scene.begin()
	w.write(step("a"), entry("compensate", "a"), step("b", "failed", effect="keyed", retryAfterMs=1))
	scene.verb(w, "cancel", status=202)
	w.write()
	w.write(end={"state": "released"})
	turn = w.claim()
	assert [e["state"] for e in turn["journal"] if e["name"] == "b"] == ["dropped"], "nobody tries it again"


@on_every_store
def test_nothing_unknown_begins_while_it_is_paused(scene):
	w = scene.begin(lease=200)
	w.write(step("a", "begun", onUnknown="retry"))
	until(lambda: scene.show(w)["steps"][0]["status"] == "UNKNOWN", "the lapse")
	w.claim()
	scene.verb(w, "pause")
	w.refused("WRONG_STATUS", step("a", "begun"))
	w.write(step("a"))


@on_every_store
def test_an_event_that_goes_back_is_the_next_ones(scene):
	w = scene.begin()
	w.write(entry("event", "x", event="go"), entry("event", "y", event="go"))
	scene.verb(w, "events/go", {"id": "1", "data": 7}, status=202)
	w.write(entry("drop", "x"), end=suspended(("event", "y")))  # it has not seen that x had come
	assert [(e["name"], e["output"]) for e in w.claim()["journal"] if e["state"] == "done" and e["kind"] == "event"] == [("y", 7)]


@on_every_store
def test_what_a_call_drops_is_not_told_as_ended(scene):
	w = scene.begin()
	w.write(entry("event", "x", event="go"))
	scene.verb(w, "events/go", {"id": "1", "data": 7}, status=202)
	body, path = w.body(entry("drop", "x")), f"{API}/runs/{w.turn['run']}/journal"
	first, again = (w.hapax.json("POST", path, body, status=200) for _ in range(2))
	assert [(e["kind"], e["name"]) for e in first["completed"]] == [("drop", "x")], first
	assert first["completed"] == again["completed"] and first["seq"] == again["seq"], "the same bytes again are answered again"


@on_every_store
def test_a_retry_is_replayed_from_the_beginning(scene):
	w = scene.begin()
	w.write(step("a"))
	w.write(end={"state": "failed", "error": {"message": "no"}})
	scene.verb(w, "retry")
	turn = w.claim(warm=[{"run": w.turn["run"], "seq": w.seq}])
	assert turn["from"] == 0 and len(turn["journal"]) == 1, turn


def test_what_comes_from_outside_has_bounds_and_is_told_at_once(dir):
	with Scene(dir, STORES[0]) as scene:
		fill_from_outside(scene)


def fill_from_outside(scene):
	w, data = scene.begin(), "x" * 1000000
	w.write(*[entry("event", "e", n, event="e") for n in range(27)])
	for n in range(26):
		scene.verb(w, "events/e", {"id": str(n), "data": data}, status=202)
	told = w.write()["completed"]
	assert len(told) == 26 and {e["state"] for e in told} == {"done", "failed"}, "nothing of what has ended is left out"
	full = [e for e in told if e["state"] == "failed"]
	assert full and all(e["error"]["code"] == "JOURNAL_FULL" for e in full)
	w.seq = told[-1]["seq"]
	w.write(end={"state": "completed"})


@on_every_store
def test_cancel_with_nothing_to_undo(scene):
	w = scene.worker()
	run = scene.start(w)
	assert scene.hapax.json("POST", f"{RUNS}/{run}/cancel", {}, status=200)["status"] == "CANCELLED"
	assert w.poll()["turns"] == []


@on_every_store
def test_pause_and_divergence(scene):
	w = scene.begin()
	w.write(step("a", "begun"))
	scene.verb(w, "pause")
	assert w.write()["paused"] is True
	w.refused("WRONG_STATUS", step("b", "begun"))
	w.write(step("a"))
	w.refused("WRONG_STATUS", end={"state": "completed"})
	w.write(end={"state": "released"})
	assert scene.status(w) == "PAUSED" and w.poll()["turns"] == [] and scene.attention(w) == ["paused_run"]
	scene.verb(w, "resume")
	w.claim()
	w.write(end={"state": "diverged", "expected": {"kind": "step", "name": "z"}, "found": {"kind": "step", "name": "a"}})
	error = scene.show(w)["error"]
	assert error["code"] == "DIVERGED" and error["cause"]["expected"]["name"] == "z" and error["cause"]["version"] == "1", error
	assert scene.attention(w) == ["held_function"] and w.poll()["turns"] == []
	scene.verb(w, "retry")
	w.claim()
	w.write(end={"state": "completed"})


@on_every_store
def test_a_run_keeps_the_version_of_its_first_entry(scene):
	w = scene.begin()
	w.write(step("a"), end={"state": "released"})
	other = Worker(scene.hapax, "w2", w.function, "2")
	assert other.poll()["turns"] == [] and len(w.poll()["turns"]) == 1


@on_every_store
def test_no_child_starts_after_a_cancel_was_answered(scene):
	w, kids = scene.begin(), scene.worker()
	kids.poll()
	w.write(*(entry("child", f"c{i}", workflow=kids.function) for i in range(3)), end=suspended(("child", "c0")))
	scene.verb(w, "cancel", status=202)  # it is over after its children
	assert kids.poll(max=3)["turns"] == []
	until(lambda: [kid["status"] for kid in scene.hapax.json("GET", f"{RUNS}?parent={w.turn['run']}", status=200)["items"]] == ["CANCELLED"] * 3,
		"the children's end")
	until(lambda: scene.hapax.json("GET", f"{RUNS}/{w.turn['run']}", status=200)["status"] == "CANCELLED", "its own end")


@on_every_store
def test_a_long_journal_grows_as_a_short_one(scene):
	"""PostgreSQL compared each entry of a call with all of the journal, until its time was over."""
	w = scene.begin()
	for k in range(5):
		w.write(*(entry("value", "v", n=k * 1000 + i, output=1) for i in range(1000)))
	w.write(end={"state": "completed"})


@on_every_store
def test_many_calls_are_one_request(scene):
	"""Each is taken or refused by itself, and the same bytes are answered again, alone or among others."""
	path, (a, b, c) = f"{API}/journal", [scene.begin() for _ in range(3)]
	ending = a.body(step("s", effect="keyed", output=1), end={"state": "completed", "output": 1})
	calls = [{"run": a.turn["run"], "call": ending}, {"run": b.turn["run"], "call": b.body(step("s", "begun"))},
		{"run": c.turn["run"], "call": {**c.body(), "fence": c.turn["fence"] + 1}}, {"run": "run_nobody", "call": a.body()},
		{"run": c.turn["run"], "call": c.body(entry("sleep", ""))}]
	first = scene.hapax.json("POST", path, {"calls": calls}, status=200)["answers"]
	assert [x["status"] for x in first] == [200, 200, 409, 404, 422], first
	assert first[2]["body"]["code"] == "STALE_FENCE" and first[4]["body"]["code"] == "BAD_ENTRY", first
	assert first[0]["body"]["seq"] == 2 and first[0]["body"]["leaseUntil"] is None and first[1]["body"]["seq"] == 1, first
	assert (scene.status(a), scene.status(b), scene.status(c)) == ("COMPLETED", "RUNNING", "RUNNING")
	assert scene.hapax.json("POST", path, {"calls": calls[:2]}, status=200)["answers"] == first[:2]
	assert scene.hapax.json("POST", f"{API}/runs/{a.turn['run']}/journal", ending, status=200)["seq"] == 2
	for bad in ({}, {"calls": []}, {"calls": calls * 21}, {"calls": [1]}, {"calls": [{"run": a.turn["run"]}]}, {"calls": [{**calls[0], "x": 1}]},
			{"calls": [calls[1], {"run": c.turn["run"], "call": {"worker": "w1"}}]}):
		assert scene.hapax.json("POST", path, bad, status=400)["code"] == "VALIDATION_ERROR"
	assert b.journal()["seq"] == 1 and c.journal()["seq"] == 0


def test_a_restart_ends_no_lease(dir):
	with Server(dir, "serve") as hapax:
		w = Worker(hapax, "w1")
		w.poll()
		hapax.json("POST", RUNS, {"definitionId": "f"}, status=201)
		w.claim()
		w.write(step("a", "begun"))
		hapax.stop()
	with Server(dir, "serve") as hapax:
		w.hapax = hapax
		assert w.write(step("a"), end={"state": "completed"})["seq"] == 3
		hapax.stop()
	audit = subprocess.run([server.HAPAX, "audit", "--db", "sqlite:hapax.db"], cwd=dir, capture_output=True, text=True)
	assert audit.returncode == 0, audit.stdout + audit.stderr


@on_every_store
def test_two_that_write_at_once_are_one(scene):
	w = scene.begin()
	for round in range(5):
		bodies = [w.body(step(f"s{round}", effect="keyed", output=n)) for n in range(6)]
		with concurrent.futures.ThreadPoolExecutor(6) as pool:
			answers = list(pool.map(lambda b: scene.hapax.call("POST", f"{API}/runs/{w.turn['run']}/journal", b), bodies))
		assert sorted(a[0] for a in answers) == [200] + [409] * 5, answers
		w.seq += 1
	assert [e["seq"] for e in w.journal()["journal"]] == [1, 2, 3, 4, 5]


@on_every_store
def test_another_workspace_sees_nothing(scene):
	w = scene.begin()
	status, _, _ = scene.hapax.call("POST", f"{API}/runs/{w.turn['run']}/journal", w.body(step("a")), headers=[("Hapax-Workspace", "other")])
	assert status == 404
	status, _, text = scene.hapax.call("POST", RUNS, {"definitionId": w.function}, headers=[("Hapax-Workspace", "other")])
	assert status == 404, text


server.run(globals())
END
