#!/usr/bin/env bash
# Hooks over real sockets: whose delivery is believed, what is done once for each event, on both stores and on two nodes at once.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import base64, concurrent.futures, contextlib, hashlib, hmac, json, os, sqlite3, subprocess, time
import server
from server import Server, until, write

RUNS = "/api/v1/workflow-runs"
PG = os.environ.get("HAPAX_TEST_PG")
STORES = ["sqlite:h.db"] + ([PG] if PG else [])
STRIPE, OLD, GITHUB, PLAIN = "whsec_test_secret", "whsec_old", "It's a Secret to Everybody", "plain secret"
STANDARD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PAY = {"workflow": "pay", "kind": "run", "steps": [
	{"name": "paid", "type": "external_event", "event": "payment", "save_as": "paid"}], "output": "{paid: .state.paid}"}
DOC = {"workflow": "doc", "kind": "entity", "status_types": ["open", "seen", "done"], "initial_status": "open",
	"steps": [{"step_id": 1, "step_key": "see", "status": "open", "successful_state": "seen"},
		{"step_id": 2, "step_key": "end", "status": "seen", "successful_state": "done"}]}
ORDER = ".data.object.metadata.order"
HOOKS = {
	"stripe": {"verify": {"scheme": "stripe", "secrets": ["${env:STRIPE_SECRET}", OLD], "window": "5m"}, "id": "/id",
		"signal": {"workflow": "pay", "key": ORDER, "event": "payment", "data": ".data.object.amount"}},
	"begin": {"verify": {"scheme": "stripe", "secrets": [STRIPE]},
		"signal": {"workflow": "pay", "key": ORDER, "event": "payment", "start": True, "input": "{order: " + ORDER + "}"}},
	"github": {"verify": {"scheme": "github", "secrets": [GITHUB]}, "when": '.action != "ping"', "start": {"workflow": "pay", "input": "{n: .n}"}},
	"standard": {"verify": {"scheme": "standard-webhooks", "secrets": [STANDARD], "window": "5m"}, "push": {"queue": "in", "payload": ".test"}},
	"ages": {"verify": {"scheme": "standard-webhooks", "secrets": [STANDARD], "window": "36500d"}, "push": {"queue": "in"}},
	"plain": {"verify": {"scheme": "hmac-sha256", "secrets": [PLAIN], "header": "X-Sig"}, "id": "/event", "keep": "1s",
		"fire": {"workflow": "doc", "id": ".doc", "step": "see"}, "requester": "hooks"},
	"brief": {"verify": {"scheme": "hmac-sha256", "secrets": [PLAIN]}, "id": "header:X-Id", "keep": "50ms", "workspace": "other", "push": {"queue": "in"}},
}


def serve(dir, store="sqlite:h.db", *args, hooks=HOOKS):
	write(dir / "workflows/pay.json", PAY)
	write(dir / "workflows/doc.json", DOC)
	write(dir / "config.json", {"hooks": hooks})
	return Server(dir, "serve", "--db", store, "--workflows", "workflows", "--config", "config.json", *args, env={"STRIPE_SECRET": STRIPE})


def mac(key, text):
	return hmac.new(key if isinstance(key, bytes) else key.encode(), text, hashlib.sha256)


def stripe(hapax, event, hook="stripe", secret=STRIPE, at=None, status=200, headers=()):
	body = json.dumps(event).encode()
	at = int(time.time()) if at is None else at
	head = f"t={at},v1={mac(secret, f'{at}.'.encode() + body).hexdigest()},v0=abc"
	return post(hapax, hook, body, [("Stripe-Signature", head), *headers], status)


def github(hapax, event, id, secret=GITHUB, status=200):
	body = event if isinstance(event, bytes) else json.dumps(event).encode()
	return post(hapax, "github", body, [("X-GitHub-Delivery", id), ("X-Hub-Signature-256", "sha256=" + mac(secret, body).hexdigest())], status)


def post(hapax, hook, body, headers, status):
	return hapax.json("POST", f"/hooks/{hook}", body, headers=headers, status=status)


def event(id, order, amount=5):
	return {"id": id, "data": {"object": {"amount": amount, "metadata": {"order": order}}}}


def runs(hapax):
	return hapax.json("GET", f"{RUNS}?limit=500", status=200)["items"]


def jobs(hapax, headers=()):
	return hapax.json("GET", "/api/v1/jobs?limit=500", headers=headers, status=200)["items"]


TAKEN, AGAIN, DECLINED = ({"accepted": True, "duplicate": False}, {"accepted": True, "duplicate": True}, {"accepted": False, "duplicate": False})


def test_published_examples(dir):
	"""GitHub's and Standard Webhooks' own examples; and Stripe's scheme, signed by openssl."""
	with serve(dir) as hapax:
		body = b'{"test": 2432232314}'
		head = [("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"), ("webhook-timestamp", "1614265330"),
			("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")]
		assert post(hapax, "ages", body, head, 200) == TAKEN
		assert post(hapax, "ages", body, head, 200) == AGAIN
		assert post(hapax, "standard", body, head, 401)["code"] == "BAD_SIGNATURE"  # its window is five minutes
		assert post(hapax, "ages", body + b" ", head, 401)["code"] == "BAD_SIGNATURE"
		assert [job["queue"] for job in jobs(hapax)] == ["in"]
		# GitHub's is no JSON: it is believed, and then refused for that.
		hello = [("X-GitHub-Delivery", "a"), ("X-Hub-Signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")]
		assert post(hapax, "github", b"Hello, World!", hello, 400)["code"] == "VALIDATION_ERROR"
		assert post(hapax, "github", b"Hello, World?", hello, 401)["code"] == "BAD_SIGNATURE"
		at = int(time.time())
		body = json.dumps(event("evt_ssl", "none")).encode()
		said = subprocess.run(["openssl", "dgst", "-sha256", "-hmac", STRIPE], input=f"{at}.".encode() + body, capture_output=True, check=True)
		head = [("Stripe-Signature", f"t={at},v1={said.stdout.decode().split()[-1]}")]
		assert post(hapax, "stripe", body, head, 404)["code"] == "NOT_FOUND"


def test_whose_delivery_is_believed(dir):
	with serve(dir) as hapax:
		now, one = int(time.time()), event("evt", "o")
		refused = lambda **how: stripe(hapax, one, hook="begin", status=401, **how)["code"] == "BAD_SIGNATURE"
		assert refused(secret="whsec_other") and refused(at=now - 400) and refused(at=now + 400)
		body = json.dumps(one).encode()
		right = mac(STRIPE, f"{now}.".encode() + body).hexdigest()
		for head in (f"v1={right}", f"t={now}", f"t={now},v1=", f"t={now},v1={right[:-2]}", f"t={now},v1={right[:-1]}{'0' if right[-1] != '0' else '1'}", f"t={now - 1},v1={right}",
				f"t=,v1={right}", f"t=x,v1={right}", "junk", f"t={now},v0={right}"):
			assert post(hapax, "begin", body, [("Stripe-Signature", head)], 401)["code"] == "BAD_SIGNATURE", head
		assert post(hapax, "begin", body, [("Stripe-Signature", f"t={now},v1={right}"), ("Stripe-Signature", f"t={now},v1={right}")], 401)["code"] == "BAD_SIGNATURE"
		assert runs(hapax) == []
		# Nothing was kept of all that: the right one is the first.
		assert post(hapax, "begin", body, [("Stripe-Signature", f"t={now},v1={'0' * 64},v1={right}")], 200) == TAKEN
		# Both secrets, while one is rotated.
		stripe(hapax, event("evt2", "o"), secret=OLD, status=200)
		# Before the body: an unknown name, no signature.
		assert hapax.raw(b"POST /hooks/nobody HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n")[0] == 404
		assert hapax.raw(b"POST /hooks/stripe HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900000\r\n\r\n")[0] == 401
		assert hapax.raw(b"POST /hooks/stripe HTTP/1.1\r\nHost: localhost\r\nStripe-Signature: t=1,v1=00\r\nContent-Length: 1048577\r\n\r\n")[0] == 413
		assert hapax.call("GET", "/hooks/stripe")[0] == 405
		hapax.await_log("a delivery to a hook was refused")
		text = hapax.call("GET", "/metrics")[2].decode()
		assert int([l for l in text.splitlines() if l.startswith("hapax_hooks_refused_total ")][0].split()[1]) >= 16, text
		assert STRIPE not in hapax.text() and OLD not in hapax.text()


def test_signal_by_key(dir):
	for i, store in enumerate(STORES):
		(dir / str(i)).mkdir()
		with serve(dir / str(i), store) as hapax:
			assert stripe(hapax, event(f"e1{i}", "o1"), status=404)["code"] == "NOT_FOUND"
			hapax.json("POST", RUNS, {"definitionId": "pay", "idempotencyKey": "o1"}, status=201)
			assert stripe(hapax, event(f"e1{i}", "o1")) == TAKEN  # nothing was kept of the 404
			assert hapax.json("GET", f"{RUNS}/by-key/pay/o1?wait=30s")["output"] == {"paid": 5}
			assert stripe(hapax, event(f"e1{i}", "o1")) == AGAIN
			assert stripe(hapax, event(f"e2{i}", "o1")) == DECLINED  # it is past it
			run = hapax.json("GET", f"{RUNS}/by-key/pay/o1", status=200)
			if run["status"] == "COMPLETED":
				hapax.json("POST", f"{RUNS}/{run['id']}/restart", {"from": run["steps"][0]["name"]}, status=200)
				assert stripe(hapax, event(f"e9{i}", "o1")) == DECLINED  # it goes on as another one
			assert stripe(hapax, event(f"e2{i}", "o1"))["duplicate"] is True
			assert stripe(hapax, {"id": f"e3{i}", "data": {}}, status=400)["code"] == "VALIDATION_ERROR"
			assert stripe(hapax, {"data": {}}, status=400)["code"] == "VALIDATION_ERROR"


def test_signal_with_start(dir):
	for i, store in enumerate(STORES):
		(dir / str(i)).mkdir()
		with serve(dir / str(i), store) as hapax:
			assert stripe(hapax, event(f"b1{i}", f"n{i}"), hook="begin") == TAKEN
			run = hapax.json("GET", f"{RUNS}/by-key/pay/n{i}?wait=30s")
			assert run["status"] == "COMPLETED" and run["input"] == {"order": f"n{i}"} and run["output"]["paid"]["id"] == f"b1{i}"
			assert stripe(hapax, event(f"b1{i}", f"n{i}"), hook="begin") == AGAIN
			assert stripe(hapax, event(f"b2{i}", f"n{i}"), hook="begin") == DECLINED
			assert stripe(hapax, event(f"b3{i}", "hook:a:b"), hook="begin", status=400)["code"] == "KEY_RESERVED"


def test_start_and_bodies_seen_before(dir):
	with serve(dir) as hapax:
		assert github(hapax, {"n": 1}, "d-1") == TAKEN
		assert github(hapax, {"n": 1}, "d-1") == AGAIN
		assert github(hapax, {"n": 1}, "d-2") == AGAIN  # the id is not signed: the same body again
		assert github(hapax, {"n": 2}, "d-1") == AGAIN
		assert github(hapax, {"n": 3}, "d-3") == TAKEN
		assert sorted(run["idempotencyKey"] for run in runs(hapax)) == ["hook:github:d-1", "hook:github:d-3"]
		assert github(hapax, {"n": 4, "action": "ping"}, "d-4") == DECLINED
		assert github(hapax, {"n": 4, "action": "ping"}, "d-4")["duplicate"] is True
		assert len(runs(hapax)) == 2
		assert hapax.json("POST", RUNS, {"definitionId": "pay", "idempotencyKey": "hook:github:d-9"}, status=400)["code"] == "KEY_RESERVED"


def await_forgotten(dir, store, hook):
	"""Its time is over. What comes once more is known by the key of its effect, which outlives that."""
	def kept():
		rows = f"SELECT count(*) FROM hx_hook_seen WHERE hook = '{hook}' AND until > {int(time.time() * 1000)}"
		if store == PG:
			return int(subprocess.run(["psql", "-qtA", PG, "-c", rows], check=True, capture_output=True).stdout)
		with contextlib.closing(sqlite3.connect(dir / "h.db", timeout=20)) as db:
			return db.execute(rows).fetchone()[0]
	until(lambda: kept() == 0, "what was seen to be forgotten")


def plain(hapax, hook, event, headers=(), status=200):
	body = json.dumps(event).encode()
	field = "X-Sig" if hook == "plain" else "X-Signature"
	return post(hapax, hook, body, [(field, base64.b64encode(mac(PLAIN, body).digest()).decode() if hook == "plain" else mac(PLAIN, body).hexdigest()), *headers], status)


def test_fire_a_step(dir):
	for i, store in enumerate(STORES):
		(dir / str(i)).mkdir()
		with serve(dir / str(i), store) as hapax:
			at = f"/api/v1/entities/doc/a{i}"
			hapax.json("POST", "/api/v1/entities/doc", {"id": f"a{i}"}, status=201)
			assert plain(hapax, "plain", {"event": f"f{i}", "doc": f"a{i}"}) == TAKEN
			until(lambda: hapax.json("GET", at)["status"] == "seen", "the step")
			assert plain(hapax, "plain", {"event": f"f{i}", "doc": f"a{i}"}) == AGAIN
			await_forgotten(dir / str(i), store, "plain")
			assert plain(hapax, "plain", {"event": f"f{i}", "doc": f"a{i}"}) == AGAIN
			assert hapax.json("GET", at)["version"] == 2
			assert plain(hapax, "plain", {"event": f"g{i}", "doc": "nobody"}) == TAKEN
			until(lambda: [job for job in jobs(hapax) if job["status"] == "PARKED"], "the job that cannot be done")


def test_push_and_keep(dir):
	with serve(dir) as hapax:
		other = [("Hapax-Workspace", "other")]
		assert plain(hapax, "brief", {"x": 1}, [("X-Id", "1"), ("Hapax-Workspace", "mine"), ("Authorization", "Bearer hx_no"), ("Idempotency-Key", "k")]) == TAKEN
		assert plain(hapax, "brief", {"x": 2}, [("X-Id", "2"), ("Idempotency-Key", "k")]) == TAKEN
		assert len(jobs(hapax, other)) == 2 and jobs(hapax) == []
		await_forgotten(dir, "sqlite:h.db", "brief")
		assert plain(hapax, "brief", {"x": 1}, [("X-Id", "1")]) == AGAIN
		assert len(jobs(hapax, other)) == 2


def test_fifty_at_once_on_two_nodes(dir):
	if not PG:
		return
	with serve(dir, PG, "--node", "one") as one, serve(dir, PG, "--node", "two") as two, concurrent.futures.ThreadPoolExecutor(25) as pool:
		for hook, send in (("begin", lambda node: stripe(node, event("fifty", "fifty"), hook="begin", status=None)),
				("github", lambda node: github(node, {"fifty": 1}, "fifty", status=None)),
				("plain", lambda node: plain(node, "plain", {"event": "fifty", "doc": "fifty"}, status=None)),
				("standard", lambda node: standard(node, b'{"test": "fifty"}', "fifty"))):
			answers = list(pool.map(lambda n: send((one, two)[n % 2]), range(50)))
			while bad := [a for a in answers if "accepted" not in a]:  # a sender tries again
				answers = [a for a in answers if "accepted" in a] + [send(one) for _ in bad]
			assert sorted(map(str, answers)) == sorted([str(TAKEN)] + [str(AGAIN)] * 49), (hook, answers)
		keys = [run["idempotencyKey"] for run in runs(one)]
		assert keys.count("fifty") == 1 and keys.count("hook:github:fifty") == 1
		assert len([job for job in jobs(one) if job.get("key") == "hook:standard:fifty"]) == 1


def standard(hapax, body, id):
	at = str(int(time.time()))
	signature = base64.b64encode(mac(base64.b64decode(STANDARD[6:]), f"{id}.{at}.".encode() + body).digest()).decode()
	return post(hapax, "standard", body, [("webhook-id", id), ("webhook-timestamp", at), ("webhook-signature", f"v1a,xx v1,{signature}")], None)


def test_what_is_refused_at_the_start(dir):
	def refuses(hook, words, env=None):
		write(dir / "config.json", {"hooks": {"h": hook}})
		done = subprocess.run([server.HAPAX, "serve", "--db", "sqlite::memory:", "--listen", "127.0.0.1:0", "--config", "config.json"],
			cwd=dir, capture_output=True, timeout=60, env={**os.environ, **(env or {})})
		assert done.returncode != 0 and words in done.stderr.decode(), done.stderr
	push = {"push": {"queue": "q"}}
	verify = lambda *secrets, scheme="stripe", **more: {"verify": {"scheme": scheme, "secrets": list(secrets), **more}}
	refuses({**verify("${env:NO_SECRET_OF_OURS}"), **push}, "NO_SECRET_OF_OURS")
	refuses({**verify("${env:EMPTY_SECRET}"), **push}, "hooks.h", {"EMPTY_SECRET": ""})
	refuses({**verify(""), **push}, "secret")
	refuses({**verify(), **push}, "secrets")
	refuses({**verify("whsec_!", scheme="standard-webhooks"), **push}, "base64")
	refuses({**verify("s", scheme="hmac-sha256"), **push}, "id is missing")
	refuses(verify("s"), "one of signal, start, fire and push")
	refuses({**verify("s"), **push, "start": {"workflow": "pay"}}, "one of signal, start, fire and push")
	refuses({**verify("s"), "singal": {}}, "signal")
	refuses({**verify("s"), "signal": {"workflow": "pay", "key": ".a ==", "event": "e"}}, "key")


server.run(globals())
END
