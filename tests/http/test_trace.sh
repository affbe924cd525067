#!/usr/bin/env bash
# W3C trace context from the request to every call that it causes: the same trace, each call a span of its own. On the way it is
# stored, so it must outlive what lies between: other nodes, later steps, retries.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import re
import server
from server import Server, Service, until, write

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
TRACED = [("traceparent", PARENT), ("tracestate", "congo=t61rcWkgMzE"), ("tracestate", "rojo=1")]
STATE = "congo=t61rcWkgMzE,rojo=1"


def start(dir, service):
	act = lambda path: {"kind": "http", "url": service.url + path, "effect": "keyed"}
	write(dir / "flows" / "billing.json", {"workflow": "billing", "kind": "entity", "status_types": ["open", "closed"],
		"initial_status": "open", "actions": {"close": act("/close"), "mail": act("/mail")},
		"steps": [{"step_id": 1, "step_key": "close", "status": "open", "successful_state": "closed", "action": "close",
			"success_after_effect": ["mail"]}]})
	write(dir / "flows" / "order.json", {"workflow": "order", "kind": "run",
		"actions": {"one": act("/one"), "two": act("/two"), "pack": {"kind": "worker", "queue": "pack", "effect": "keyed"}},
		"steps": [{"name": "one", "type": "task", "action": "one", "retry": {"max_attempts": 1000, "initial": "10ms", "factor": 1, "jitter": False}},
			{"name": "two", "type": "task", "action": "two"}, {"name": "pack", "type": "task", "action": "pack"}]})
	write(dir / "flows" / "render.json", {"workflow": "render", "kind": "batch",
		"actions": {"one": act("/item"), "delete": act("/delete"), "tell": act("/tell")},
		"item_action": "one", "cleanup_action": "delete", "done_after_effect": ["tell"]})
	return Server(dir, "serve", "--db", "sqlite:h.db", "--workflows", "flows")


def span(parent, state=None):
	"""The parent id of what a call was given, which must be of our trace."""
	m = re.fullmatch(rf"00-{TRACE}-([0-9a-f]{{16}})-01", parent or "")
	assert m, f"not of this trace: {parent}"
	assert m[1] != SPAN, "the caller's span was passed on as it was"
	assert state == STATE, state
	return m[1]


def span_of(call):
	return span(call[1].get("traceparent"), call[1].get("tracestate"))


def test_entity_and_its_after_effect(dir):
	with Service() as service, start(dir, service) as hapax:
		hapax.json("POST", "/api/v1/entities/billing", {"id": "a"}, status=201)
		hapax.json("POST", "/api/v1/entities/billing/a/steps/close", {}, TRACED, status=200)
		close, mail = service.await_calls("/close")[0], service.await_calls("/mail")[0]
		assert span_of(close) != span_of(mail)


def test_every_step_of_a_run_and_the_job_of_a_worker(dir):
	with Service() as service, start(dir, service) as hapax:
		service.answer = (503, b"{}")
		run = hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "order"}, TRACED, status=201)["run"]["id"]
		service.await_calls("/one", 2)
		service.answer = (200, b"{}")
		two = service.await_calls("/two")[0]
		spans = [span_of(c) for c in service.calls]
		assert len(set(spans)) == len(spans) >= 3, "an attempt is a span of its own, too"
		job = hapax.json("POST", "/api/v1/jobs/claim", {"queues": ["pack"], "owner": "w", "waitMs": 20000}, status=200)["jobs"][0]
		assert span(job["traceparent"], job["tracestate"]) not in spans
		hapax.json("POST", f"/api/v1/jobs/{job['id']}/complete", {"owner": "w", "fence": job["fence"]}, status=200)
		assert hapax.json("GET", f"/api/v1/workflow-runs/{run}?wait=20s")["status"] == "COMPLETED"


def test_a_run_keeps_it_over_a_restart(dir):
	with Service() as service:
		with start(dir, service) as hapax:
			service.hold.clear()
			hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "order"}, TRACED, status=201)
			first = span_of(service.await_calls("/one")[0])
			hapax.process.kill()
		service.hold.set()
		with start(dir, service) as hapax:
			assert span_of(service.await_calls("/one", 2)[1]) != first, "another holder, another span"
			span_of(service.await_calls("/two")[0])


def test_items_of_a_batch_and_its_after_effect(dir):
	with Service() as service, start(dir, service) as hapax:
		hapax.json("POST", "/api/v1/accounts", {"id": "acc", "balance": 100}, status=201)
		hapax.json("POST", "/api/v1/batches?wait=20s", {"workflow": "render", "account": "acc",
			"items": [{"input": {}, "cost": 1}] * 3}, TRACED, status=201)
		spans = [span_of(c) for c in service.await_calls("/item", 3) + service.await_calls("/tell")]
		assert len(set(spans)) == 4, spans


def test_cleanup_of_a_batch(dir):
	with Service() as service, start(dir, service) as hapax:
		hapax.json("POST", "/api/v1/accounts", {"id": "acc", "balance": 1}, status=201)
		batch = hapax.json("POST", "/api/v1/batches", {"workflow": "render", "account": "acc",
			"items": [{"input": {}, "cost": 1}] * 2}, TRACED, status=201)
		id = batch.get("id") or batch["batch"]["id"]
		until(lambda: hapax.json("GET", f"/api/v1/batches/{id}")["status"] == "OUT_OF_CREDIT", "its stop")
		hapax.call("POST", f"/api/v1/batches/{id}/cancel", {})
		span_of(service.await_calls("/delete")[0])


def made(calls):
	"""The id of the trace that all of these calls are of, which nobody sent."""
	parents = [re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01", call[1].get("traceparent") or "") for call in calls]
	assert all(parents), calls
	assert len({m[1] for m in parents}) == 1 and len({m[2] for m in parents}) == len(parents), calls
	assert not any("tracestate" in call[1] for call in calls), calls
	return parents[0][1]


def test_where_there_is_none_one_is_made(dir):
	with Service() as service, start(dir, service) as hapax:
		traces = set()
		for id in "ab":
			hapax.json("POST", "/api/v1/entities/billing", {"id": id}, status=201)
			hapax.json("POST", f"/api/v1/entities/billing/{id}/steps/close", {}, [("tracestate", "congo=1")], status=200)
			traces.add(made([service.await_calls("/close", len(traces) + 1)[-1], service.await_calls("/mail", len(traces) + 1)[-1]]))
		hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "order"}, status=201)
		traces.add(made(service.await_calls("/one") + service.await_calls("/two")))
		hapax.json("POST", "/api/v1/accounts", {"id": "acc", "balance": 100}, status=201)
		hapax.json("POST", "/api/v1/batches?wait=20s", {"workflow": "render", "account": "acc", "items": [{"input": {}, "cost": 1}] * 2}, status=201)
		traces.add(made(service.await_calls("/item", 2) + service.await_calls("/tell")))
		assert len(traces) == 4, "each request has a trace of its own"


# A step without a claim has no holder: it tells the last one, or 1.
def test_every_call_has_a_fence(dir):
	with Service() as service, start(dir, service) as hapax:
		hapax.json("POST", "/api/v1/entities/billing", {"id": "a"}, status=201)
		hapax.json("POST", "/api/v1/entities/billing/a/steps/close", {}, status=200)
		for path in ("/close", "/mail"):
			assert int(service.await_calls(path)[0][1]["hapax-fence"]) >= 1


# The rules of the standard, on the wire; all of them are in tests/unit/base/test_trace.c.
def test_what_is_not_well_formed_is_none(dir):
	cases = {f"ff-{TRACE}-{SPAN}-01": False, f"00-{'0' * 32}-{SPAN}-01": False, f"00-{TRACE}-{'0' * 16}-01": False,
		PARENT.upper(): False, PARENT + "-more": False, f"cc-{TRACE}-{SPAN}-01-more": True, PARENT + ", " + PARENT: False}
	with Service() as service, start(dir, service) as hapax:
		for i, (parent, good) in enumerate(cases.items()):
			hapax.json("POST", "/api/v1/entities/billing", {"id": f"e{i}"}, status=201)
			hapax.json("POST", f"/api/v1/entities/billing/e{i}/steps/close", {}, [("traceparent", parent)], status=200)
			got = service.await_calls("/close", i + 1)[i][1]["traceparent"]
			assert (TRACE in got) == good, f"{parent}: {got}"
		hapax.json("POST", "/api/v1/entities/billing", {"id": "twice"}, status=201)
		hapax.json("POST", "/api/v1/entities/billing/twice/steps/close", {}, [("traceparent", PARENT)] * 2, status=200)
		assert TRACE not in service.await_calls("/close", len(cases) + 1)[-1][1]["traceparent"]


# The gate is a proxy: it does not take part, and changes nothing.
def test_gate_passes_it_on(dir):
	with Service() as service:
		with Server(dir, "gate", "--upstream", service.url, "--store", "memory:") as gate:
			gate.call("POST", "/pay", {}, [("Idempotency-Key", "k"), ("traceparent", PARENT), ("tracestate", STATE)])
			gate.call("GET", "/look", None, [("traceparent", PARENT), ("tracestate", STATE)])
			for path in ("/pay", "/look"):
				fields = service.await_calls(path)[0][1]
				assert (fields.get("traceparent"), fields.get("tracestate")) == (PARENT, STATE), fields


server.run(globals())
END
