#!/usr/bin/env bash
# A run goes on with another version of its definition: what may differ and what may not, names and keys, branches and items, the dry run,
# what history and audit say of it, and the command line. On every store.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import os, subprocess, urllib.parse
import server
from server import Server, Service, until

RUNS = "/api/v1/workflow-runs"
STORES = ["sqlite:h.db"] + ([os.environ["HAPAX_TEST_PG"]] if os.environ.get("HAPAX_TEST_PG") else [])


def task(name, **more):
	return {"name": name, "type": "task", "action": "Do", "compensate": "Undo", "retry": {"max_attempts": 1}, **more}


def event(name, **more):
	return {"name": name, "type": "external_event", "event": name, **more}


def flow(service, steps, **more):
	return {"workflow": "order", "kind": "run", "actions": {
		"Do": {"kind": "http", "url": service.url + "/do", "effect": "keyed"},
		"Other": {"kind": "http", "url": service.url + "/other", "effect": "keyed"},
		"Undo": {"kind": "http", "url": service.url + "/undo", "effect": "keyed"},
		"Undo2": {"kind": "http", "url": service.url + "/undo2", "effect": "keyed"}}, "steps": steps, **more}


class Scene:
	def __init__(self, dir, store):
		self.dir, self.store = dir, store
		dir.mkdir()

	def __enter__(self):
		self.service = Service()
		self.service.__enter__()
		self.hapax = Server(self.dir, "serve", "--db", self.store)
		self.hapax.__enter__()
		return self

	def __exit__(self, *args):
		self.hapax.__exit__(*args)
		self.service.__exit__(*args)

	def put(self, steps, **more):
		return self.hapax.json("PUT", "/api/v1/definitions/order", flow(self.service, steps, **more))["version"]

	def start(self, **more):
		run = self.hapax.json("POST", RUNS, {"definitionId": "order", **more}, status=201)["run"]["id"]
		return run

	def show(self, run):
		return self.hapax.json("GET", f"{RUNS}/{run}", status=200)

	def at(self, run, step, status="WAITING"):
		def there():
			shown = self.show(run)
			return shown["currentStep"] == step and shown["status"] == status
		until(there, f"{run} to be {status} at {step}")

	def migrate(self, run, to, status=200, **more):
		return self.hapax.json("POST", f"{RUNS}/{run}/migrate", {"definitionVersion": to, **more}, status=status)

	def verb(self, run, verb, body={}, status=None):
		return self.hapax.json("POST", f"{RUNS}/{run}/{verb}", body, status=status)

	def ended(self, run, status):
		until(lambda: self.show(run)["status"] == status, f"{run} to be {status}")
		return self.show(run)

	def keys(self, path):
		return [head["idempotency-key"].split("/", 1)[1] for at, head, _ in self.service.calls if at == path]

	def audit(self):
		args = [server.HAPAX, "audit", "--db", self.store]
		done = subprocess.run(args, cwd=self.dir, capture_output=True)
		assert done.returncode == 0, (done.stdout, done.stderr)


def each_store(test):
	def on_each(dir):
		for i, store in enumerate(STORES):
			with Scene(dir / str(i), store) as scene:
				test(scene)
				scene.audit()
	on_each.__name__ = test.__name__
	return on_each


@each_store
def test_goes_on_as_if_it_had_always_been_so(s):
	v1 = s.put([task("pay"), event("go"), task("ship")])
	v2 = s.put([task("pay"), event("go"), task("pack"), task("ship", action="Other")], output="{packed: .steps.pack.status}")
	run = s.start()
	assert s.show(run)["definitionVersion"] == v2
	s.verb(run, "cancel")
	v3 = s.put([task("pay"), event("go"), task("ship")])
	assert v3 > v2 and v1 < v2
	run = s.start()
	s.at(run, "go")
	before = s.show(run)
	dry = s.migrate(run, v2, dryRun=True)
	assert dry["dryRun"] is True and dry["definitionVersion"] == v2 and dry["version"] == before["version"], dry
	assert s.show(run)["definitionVersion"] == v3
	done = s.migrate(run, v2)
	assert done == {"id": run, "status": "WAITING", "version": before["version"] + 1, "definitionVersion": v2, "dryRun": False}, done
	again = s.migrate(run, v2)  # has that version already: nothing happens again
	assert again["definitionVersion"] == v2, again
	noted = [row for row in s.hapax.json("GET", f"{RUNS}/{run}/history", status=200)["items"] if row.get("reason")]
	assert [row["reason"] for row in noted] == [f"migrated from version {v3} to version {v2}"], noted
	assert noted[0]["requester"], noted
	assert "go" in str(s.hapax.json("GET", f"{RUNS}/{run}/why", status=200))
	s.verb(run, "events/go", status=202)
	shown = s.ended(run, "COMPLETED")
	assert shown["output"] == {"packed": "COMPLETED"} and shown["definitionVersion"] == v2, shown
	assert s.keys("/other") == ["ship/0"]
	assert s.verb(run, "migrate", {"definitionVersion": v3}, status=409)["code"] == "WRONG_STATUS"


@each_store
def test_the_first_step_that_does_not_fit(s):
	old = s.put([task("pay"), {"name": "c", "type": "condition", "when": "true", "then": "go"}, task("jumped"), event("go"), task("ship")])
	run = s.start(idempotencyKey="k")
	s.at(run, "go")

	def refused(definition, step, **more):
		to = s.put(definition)
		answer = s.migrate(run, to, status=422, **more)
		assert answer["code"] == "CANNOT_MIGRATE" and answer["step"] == step and step in answer["detail"], answer
		assert s.migrate(run, to, status=422, dryRun=True, **more)["step"] == step
	condition = {"name": "c", "type": "condition", "when": "true", "then": "go"}
	refused([task("bill"), condition, task("jumped"), event("go")], "pay")
	refused([task("new"), task("pay"), condition, task("jumped"), event("go")], "pay")
	refused([{"name": "pay", "type": "wait", "for": "1s"}, condition, task("jumped"), event("go")], "pay")
	refused([task("pay"), {**condition, "then": "other"}, task("jumped"), event("go"), task("other")], "go")
	refused([task("pay"), {"name": "c", "type": "condition", "when": "true"}, event("late"), event("go")], "go")
	refused([task("pay"), condition, task("jumped"), event("go")], "nope", steps={"nope": "pay"})
	refused([task("pay"), condition, task("jumped"), event("go")], "none", steps={"pay": "none"})
	refused([task("paid"), condition, task("pay"), event("go")], "pay", steps={"pay": "paid"})
	refused([task("jumped"), condition, event("go")], "jumped", steps={"pay": "jumped"})
	assert s.migrate(run, 999, status=404)["code"] == "NOT_FOUND"
	for body in ({}, {"definitionVersion": 0}, {"definitionVersion": "1"}, {"definitionVersion": 1, "steps": []},
			{"definitionVersion": 1, "steps": {"a": 1}}, {"definitionVersion": 1, "dryRun": 1}, {"definitionVersion": 1, "x": 1}):
		assert s.verb(run, "migrate", body, status=400)["code"] == "VALIDATION_ERROR", body
	assert s.show(run)["definitionVersion"] == old
	# What was jumped over may be other, and moves what comes after it.
	to = s.put([task("pay"), condition, task("j1"), task("j2"), task("j3"), event("go"), task("ship")])
	s.hapax.json("POST", f"{RUNS}/by-key/order/k/migrate", {"definitionVersion": to}, status=200)
	s.verb(run, "events/go", status=202)
	shown = s.ended(run, "COMPLETED")
	assert [(step["name"], step["status"]) for step in shown["steps"]] == [("pay", "COMPLETED"), ("c", "COMPLETED"), ("j1", "SKIPPED"),
		("j2", "SKIPPED"), ("j3", "SKIPPED"), ("go", "COMPLETED"), ("ship", "COMPLETED")], shown["steps"]


@each_store
def test_a_renamed_step_keeps_its_keys(s):
	first = s.put([task("a"), task("b"), event("go")])
	run = s.start()
	s.at(run, "go")
	s.migrate(run, s.put([task("x"), task("b"), event("go")]), steps={"a": "x"})
	s.migrate(run, s.put([task("y", compensate="Undo2"), task("b"), event("gone")]), steps={"x": "y", "go": "gone"})
	to = s.put([task("y"), task("b"), event("gone"), task("a")])
	refused = s.migrate(run, to, status=422)  # its calls would have the keys of the first step
	assert refused["step"] == "a", refused
	s.verb(run, "cancel", status=202)
	s.ended(run, "CANCELLED")
	assert sorted(s.keys("/do")) == ["a/0", "b/0"]
	assert s.keys("/undo") + s.keys("/undo2") == ["b/undo", "a/undo"], s.service.calls
	# Also what a restart has passed on.
	s.put([task("a"), event("go")])
	run = s.start()
	s.at(run, "go")
	s.migrate(run, s.put([task("x"), {"name": "go", "type": "external_event", "event": "go", "timeout": "1ms"}]), steps={"a": "x"})
	s.ended(run, "FAILED")
	new = s.verb(run, "restart", {"from": "go"}, status=200)["id"]
	s.ended(new, "FAILED")
	s.service.calls.clear()
	s.verb(new, "cancel", status=202)
	s.ended(new, "CANCELLED")
	assert [head["idempotency-key"] for _, head, _ in s.service.calls] == [f"{run}/a/undo"], s.service.calls


@each_store
def test_a_failed_step_with_another_action(s):
	s.put([{"name": "c", "type": "condition", "when": ".input.a.b"}, task("pay")])
	run = s.start(input={"a": 1})
	s.ended(run, "FAILED")
	to = s.put([{"name": "c", "type": "condition", "when": ".input.a == 1"}, task("pay")])
	assert s.migrate(run, to)["status"] == "FAILED"
	s.verb(run, "retry", status=200)
	s.ended(run, "COMPLETED")


@each_store
def test_a_decision_that_nobody_has_taken(s):
	s.put([{"name": "ok", "type": "approval"}, task("pay")])
	run = s.start()
	s.at(run, "ok")
	s.verb(run, "pause", status=200)
	s.verb(run, "approvals/ok", {"decision": "approve"}, status=200)
	to = s.put([{"name": "agreed", "type": "approval"}, task("pay")])
	s.migrate(run, to, steps={"ok": "agreed"})
	assert s.verb(run, "approvals/agreed", {"decision": "reject"}, status=409)["code"] == "WRONG_STATUS"
	s.verb(run, "resume", status=200)
	shown = s.ended(run, "COMPLETED")
	assert shown["steps"][0]["output"]["decision"] == "approve", shown
	# And one that comes after it, while the run rests under its old name.
	s.put([{"name": "ok", "type": "approval"}, task("pay")])
	run = s.start()
	s.at(run, "ok")
	s.verb(run, "pause", status=200)
	s.migrate(run, to, steps={"ok": "agreed"})
	s.verb(run, "approvals/agreed", {"decision": "approve"}, status=200)
	s.verb(run, "resume", status=200)
	s.ended(run, "COMPLETED")


def tree(prefix, more=()):
	return [task("a"), {"name": f"{prefix}both", "type": "parallel", "branches": {
		"x": [task(f"{prefix}x1"), event("go"), *more],
		"y": [{"name": f"{prefix}each", "type": "map", "over": ".input.items", "action": "Do", "compensate": "Undo"},
			{"name": f"{prefix}poll", "type": "repeat", "until": "true", "steps": [event("come")]}]}}]


@each_store
def test_branches_and_bodies_go_along(s):
	s.hapax.json("PUT", "/api/v1/definitions/leaf", {"workflow": "leaf", "kind": "run", "steps": [event("never")]})
	first = s.put(tree(""))
	run = s.start(input={"items": [1, 2, 3]})

	def members(of):
		found = s.hapax.json("GET", f"{RUNS}?parent={of}&limit=500", status=200)["items"]
		return found + [c for kid in found for c in members(kid["id"])]
	until(lambda: len(members(run)) == 6 and sum(m["status"] == "WAITING" for m in members(run)) == 3, "the tree to rest")
	part = members(run)[0]["id"]
	to = s.put(tree("n_", [task("x9")]))
	names = {"both": "n_both", "x1": "n_x1", "each": "n_each", "poll": "n_poll"}
	assert s.migrate(run, to, status=422)["step"] == "both"
	assert s.migrate(run, to, status=422, steps={"both": "n_both", "x1": "n_x1", "poll": "n_poll"})["step"] == "each"
	assert s.migrate(part, to, status=409, steps=names)["code"] == "WRONG_STATUS"
	s.migrate(run, to, steps=names)
	assert {m["definitionVersion"] for m in members(run)} == {to}, members(run)
	assert {m["parent"]["step"] for m in members(run)} == {"n_both", "n_each", "n_poll"}
	s.verb(run, "events/go", status=202)
	s.verb(run, "events/come", status=202)
	shown = s.ended(run, "COMPLETED")
	assert "x9/0" in s.keys("/do"), s.keys("/do")
	# One that is COMPLETED is not migrated, and so undone with what it had; of one that is under way all is undone, under its old keys.
	s.put(tree(""))
	run = s.start(input={"items": [1, 2, 3]})
	until(lambda: len(members(run)) == 6 and sum(m["status"] == "WAITING" for m in members(run)) == 3, "the tree to rest")
	s.migrate(run, to, steps=names)
	s.service.calls.clear()
	s.verb(run, "cancel", status=202)
	s.ended(run, "CANCELLED")
	assert sorted(s.keys("/undo")) == ["a/undo", "each/undo", "each/undo", "each/undo", "x1/undo"], s.keys("/undo")
	assert s.keys("/undo")[-1] == "a/undo"


@each_store
def test_it_is_found_by_what_the_other_version_names(s):
	s.put([task("pay", save_as="a"), event("go")], attributes={"n": ".input.n"})
	run = s.start(input={"n": 1, "m": "x"})
	s.at(run, "go")
	to = s.put([task("paid", save_as="b"), event("go")], attributes={"n": ".input.none", "m": ".input.m", "there": ".state.b | has(\"x\")", "done": ".steps.paid.status"})
	found = lambda where: [r["id"] for r in s.hapax.json("GET", f"{RUNS}?where={urllib.parse.quote(where)}", status=200)["items"]]
	assert run in found("n == 1")  # what is in force has not changed the run
	s.migrate(run, to, steps={"pay": "paid"})
	assert run not in found("n == 1")
	assert run in found('m == "x" and there == false and done == "COMPLETED"'), s.show(run)


@each_store
def test_children_of_other_workflows_keep_theirs(s):
	leaf = {"workflow": "leaf", "kind": "run", "steps": [event("go")]}
	kept = s.hapax.json("PUT", "/api/v1/definitions/leaf", leaf)["version"]
	s.put([{"name": "one", "type": "child", "workflow": "leaf"}])
	run = s.start()
	until(lambda: s.hapax.json("GET", f"{RUNS}?parent={run}")["items"], "the child")
	child = s.hapax.json("GET", f"{RUNS}?parent={run}")["items"][0]["id"]
	s.at(child, "go")
	s.at(run, "one")
	s.hapax.json("PUT", "/api/v1/definitions/leaf", {**leaf, "output": "1"})
	to = s.put([{"name": "first", "type": "child", "workflow": "leaf"}, task("pay")])
	s.migrate(run, to, steps={"one": "first"})
	s.verb(child, "events/go", status=202)
	shown = s.ended(run, "COMPLETED")
	assert s.show(child)["definitionVersion"] == kept and s.show(child)["parent"]["step"] == "first"


@each_store
def test_what_is_under_way_is_left(s):
	old = s.put([task("slow"), event("go")])
	s.service.hold.clear()
	run = s.start()
	s.service.await_calls("/do", 1)
	to = s.put([task("slow"), event("come")])
	assert s.migrate(run, to, status=409)["code"] == "WRONG_STATUS"
	s.verb(run, "pause", status=200)  # what is under way is still so
	answer = s.migrate(run, to, status=409)
	assert answer["code"] == "WRONG_STATUS" and "slow" in answer["detail"], answer
	s.service.hold.set()
	until(lambda: s.show(run)["currentStep"] == "go", "the step to be recorded")
	assert s.show(run)["definitionVersion"] == old
	s.migrate(run, to)
	s.verb(run, "resume", status=200)
	s.at(run, "come")


def test_command_line(dir):
	with Scene(dir / "0", STORES[0]) as s:
		s.put([task("a"), event("go")])
		run = s.start()
		s.at(run, "go")
		to = s.put([task("b"), event("come")])

		def cli(*args):
			done = subprocess.run([server.HAPAX, "run", "migrate", run, *args, "--server", f"http://127.0.0.1:{s.hapax.port}"], capture_output=True)
			return done.returncode, (done.stdout + done.stderr).decode()
		assert cli("--to", str(to))[0] == 2
		assert cli("--to", str(to), "--rename", "a")[0] == 2
		code, text = cli("--to", str(to), "--rename", "a=b,go=come", "--dry-run")
		assert code == 0 and "nothing was changed" in text, text
		code, text = cli("--to", str(to), "--rename", "a=b,go=come")
		assert code == 0 and f"definition {to}" in text and "nothing" not in text, text


server.run(globals())
END
