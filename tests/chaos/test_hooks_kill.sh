#!/usr/bin/env bash
# kill -9 while events are delivered, each again and again until it is answered, as services do: every event has one effect, on SQLite and
# on PostgreSQL with two nodes.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import hashlib, hmac, json, os, random, threading, time
import server
from server import Server, until, write

EVENTS, KILLS, SENDERS, SECRET = 60, 4, 8, "sesame"
SEED = random.randrange(1 << 32)
print(f"# hooks_kill: seed {SEED}")
random.seed(SEED)
PAY = {"workflow": "pay", "kind": "run", "steps": [{"name": "paid", "type": "external_event", "event": "payment", "save_as": "paid"}],
	"output": "{paid: .state.paid}"}
HOOK = {"verify": {"scheme": "hmac-sha256", "secrets": [SECRET]}, "id": "/id"}
HOOKS = {"signal": {**HOOK, "signal": {"workflow": "pay", "key": ".id", "event": "payment", "data": ".id", "start": True}},
	"start": {**HOOK, "start": {"workflow": "pay"}}, "push": {**HOOK, "push": {"queue": "in"}}}


def serve(dir, store, name):
	write(dir / "workflows/pay.json", PAY)
	write(dir / "config.json", {"hooks": HOOKS})
	return Server(dir, "serve", "--db", store, "--workflows", "workflows", "--config", "config.json", "--node", name)


def deliver(nodes, hook, id):
	"""Until it is answered; then once more. How often it was told that it is new."""
	body = json.dumps({"id": id}).encode()
	head = [("X-Signature", hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest())]
	new, end = 0, time.monotonic() + 120
	for _ in range(2):
		while True:
			assert time.monotonic() < end, id
			try:
				status, _, text = random.choice(nodes).call("POST", f"/hooks/{hook}", body, head)
			except OSError:
				status = 0
			if status == 200:
				answer = json.loads(text)
				assert answer["accepted"], (id, answer)
				new += not answer["duplicate"]
				break
			time.sleep(0.02)
	return new


def send_all(nodes, told, work, lock):
	while True:
		with lock:
			if not work:
				return
			hook, id = work.pop()
		told[hook, id] = deliver(nodes, hook, id)


def all_of(hapax, path):
	found, cursor = [], ""
	while cursor is not None:
		page = hapax.json("GET", f"{path}limit=500{'&cursor=' + cursor if cursor else ''}", status=200)
		found, cursor = found + page["items"], page["cursor"]
	return found


def kill_and_count(dir, store, names):
	nodes, told, lock = [serve(dir, store, name) for name in names], {}, threading.Lock()
	work = [(hook, f"e{n}") for n in range(EVENTS) for hook in HOOKS]
	total = len(work)
	threads = [threading.Thread(target=send_all, args=(nodes, told, work, lock)) for _ in range(SENDERS)]
	for thread in threads:
		thread.start()
	for kill in range(KILLS):
		until(lambda: len(told) >= total * (kill + 1) // (KILLS + 2), "deliveries", 120)
		i = random.randrange(len(nodes))
		nodes[i].process.kill()
		nodes[i].process.wait()
		nodes[i] = serve(dir, store, names[i])  # the senders find it there
	for thread in threads:
		thread.join()
	try:
		assert len(told) == total and max(told.values()) <= 1, [t for t in told.items() if t[1] > 1]
		runs = all_of(nodes[0], "/api/v1/workflow-runs?")
		keys = sorted(run["idempotencyKey"] for run in runs)
		assert keys == sorted([f"e{n}" for n in range(EVENTS)] + [f"hook:start:e{n}" for n in range(EVENTS)]), len(keys)
		jobs = sorted(job["key"] for job in all_of(nodes[0], "/api/v1/jobs?queue=in&"))
		assert jobs == sorted(f"hook:push:e{n}" for n in range(EVENTS)), len(jobs)
		for n in range(EVENTS):
			until(lambda: nodes[0].json("GET", f"/api/v1/workflow-runs/by-key/pay/e{n}")["output"] == {"paid": f"e{n}"}, f"the end of e{n}")
	finally:
		for node in nodes:
			node.__exit__()


def test_sqlite(dir):
	kill_and_count(dir, "sqlite:h.db", ["one"])


def test_two_nodes_on_postgresql(dir):
	if os.environ.get("HAPAX_TEST_PG"):
		kill_and_count(dir, os.environ["HAPAX_TEST_PG"], ["one", "two"])


server.run(globals())
END
