"""
A hostile neighbour (tests/soak/hostile.sh starts it). Two nodes on one PostgreSQL serve two workspaces: `good` works at a fixed
rate, first alone, then beside `evil`, which does all that its key lets it do to hold up the others:

	deferred   sql that breaks a constraint which only the commit looks at
	sleeps     sql that sleeps for an hour; endless: a recursive query (one at a time: processors are not shared fairly yet)
	locked     sql, and entities in a table of the user's, whose rows another program keeps locked
	reaches    sql whose function writes the engine's tables and the session's settings; definitions that name them
	refused    runs that fail
	halves     half-sent bodies, with and without a key, large and small
	polls      800 workers that wait for jobs which never come
	clocks     one node's clock after the other is set minutes or 25 hours off, for moments (libfaketime)

Left out, because nothing divides it among workspaces yet: a slow service that fills the 256 http calls of a node, more requests
than the machine can serve, more runs than the 2,048 that a node drives at once, sql that burns all processors. The connections
for sql are divided (task/shares.h): so the good one's runs with sql are among all that is judged.

There are four programs in this file, so that none waits for another one's interpreter: the judge, the good one's clients, the evil
one's, and the service that actions call.
"""
import asyncio, collections, glob, http.client, http.server, json, math, os, pathlib, random, re, shutil, signal, subprocess, sys, tempfile, threading, time, traceback, urllib.request
import server
from server import Server, until, write

SECONDS = int(os.environ.get("HAPAX_SOAK_SECONDS") or 3600)
QUIET = min(600, max(20, SECONDS // 2))
CLIENTS, TICK = 8, 0.6  # each client begins a piece of work every TICK seconds
POLLS, HALVES = 800, 120  # 20 large ones on each node: 280 MiB, more than it has
ITEMS, COST = 3, 5
FACTOR = 3  # by so much the p99 of all calls may rise; that of each kind is told
UNDER_WAY = 200  # of each kind that the evil one begins: more than there is time for
PG = os.environ.get("HAPAX_TEST_PG")
LIBRARY = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)


def psql(text):
	return subprocess.run(["psql", "-qXAt", PG, "-v", "ON_ERROR_STOP=1", "-c", text], check=True, stdout=subprocess.PIPE).stdout.decode().strip()


# ---- the service: does what it is told, and keeps under which keys --------------------------------------------------------------

def serve_actions():
	lock, effects = threading.Lock(), {}  # what was done (path, id, step, item) → {key: calls}

	class Handler(http.server.BaseHTTPRequestHandler):
		protocol_version, wbufsize = "HTTP/1.1", -1  # one packet for head and body

		def do_POST(self):
			body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
			name = " ".join([self.path, body["id"], str(body.get("step")), str(body.get("item", {}).get("n"))])
			with lock:
				keys = effects.setdefault(name, {})
				keys[self.headers["Idempotency-Key"]] = keys.get(self.headers["Idempotency-Key"], 0) + 1
			self.answer(400 if self.path == "/refuse" else 200, b"{}")

		def do_GET(self):
			with lock:
				self.answer(200, json.dumps(effects).encode())

		def answer(self, status, text):
			self.send_response(status)
			self.send_header("Content-Length", str(len(text)))
			self.end_headers()
			self.wfile.write(text)

		log_message = lambda *_: None
	httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
	httpd.daemon_threads = True
	print(httpd.server_address[1], flush=True)
	httpd.serve_forever()


# ---- the good one: CLIENTS clients at a fixed rate ------------------------------------------------------------------------------

class Client(threading.Thread):
	"""One piece of work after the other, at most one in TICK seconds. Each call is timed."""

	def __init__(self, told, n, end):
		super().__init__()
		self.told, self.n, self.end = told, n, end
		self.nodes = [http.client.HTTPConnection("127.0.0.1", port, timeout=120) for port in told["ports"]]
		self.times, self.errors = collections.defaultdict(list), []
		self.entities, self.runs, self.notes, self.batches = [], [], [], []
		self.last = None  # a request with an Idempotency-Key, and what was answered

	def run(self):
		kinds = [self.entity, self.three, self.note, self.job, self.batch, self.reads, self.again]
		due = time.monotonic() + TICK * self.n / CLIENTS
		count = self.n
		while due < self.end:
			time.sleep(max(0, due - time.monotonic()))
			self.node = self.nodes[count // len(kinds) % len(self.nodes)]
			try:
				kinds[count % len(kinds)](f"{self.told['prefix']}-{self.n}-{count}")
			except Exception as e:  # told, and judged at the end
				self.errors.append(f"{kinds[count % len(kinds)].__name__}: {e!r}")
				self.node.close()
			count, due = count + 1, max(due + TICK, time.monotonic())

	def call(self, kind, wanted, method, path, body=None, key=None):
		head = {"Authorization": "Bearer " + self.told["key"], **({"Idempotency-Key": key} if key else {})}
		began = time.monotonic()
		self.node.request(method, "/api/v1" + path, None if body is None else json.dumps(body), head)
		answer = self.node.getresponse()
		text = answer.read()
		self.times[kind].append(time.monotonic() - began)
		assert answer.status == wanted, f"{method} {path}: {answer.status} {text[:300]!r}"
		return json.loads(text), answer.headers.get("Idempotency-Replayed")

	def entity(self, name):
		body = {"id": name, "data": {"by": self.n}}
		answer, _ = self.call("entity", 201, "POST", "/entities/doc", body, key=name)
		self.last = ("/entities/doc", body, name, answer)
		self.entities.append(name)
		answer, _ = self.call("step", 200, "POST", f"/entities/doc/{name}/steps/close", {})
		assert answer["entity"]["status"] == "closed", answer

	def three(self, name, kind="run", workflow="three"):
		answer, _ = self.call(kind, 201, "POST", "/workflow-runs?wait=60s", {"definitionId": workflow, "input": {"n": self.n}, "idempotencyKey": name})
		(self.runs if kind == "run" else self.notes).append(answer["run"]["id"])
		assert answer["run"]["status"] == "COMPLETED", answer

	def note(self, name):
		self.three(name, "sql", "note")

	def job(self, name):
		queue, owner = f"good-{self.n}", f"worker-{self.n}"
		pushed, _ = self.call("push", 201, "POST", "/jobs", {"queue": queue, "payload": {"name": name}, "key": name})
		claimed, _ = self.call("claim", 200, "POST", "/jobs/claim", {"queues": [queue], "owner": owner, "max": 1, "leaseMs": 30000, "waitMs": 30000})
		assert [j["id"] for j in claimed["jobs"]] == [pushed["jobs"][0]["id"]], (pushed, claimed)
		(job,) = claimed["jobs"]
		self.call("complete", 200, "POST", f"/jobs/{job['id']}/complete", {"owner": owner, "fence": job["fence"]})

	def batch(self, name):
		items = [{"input": {"n": n}, "cost": COST} for n in range(ITEMS)]
		answer, _ = self.call("batch", 201, "POST", "/batches?wait=60s", {"workflow": "few", "account": f"acc-{self.n}", "items": items, "idempotencyKey": name})
		batch = answer.get("batch", answer)
		self.batches.append(batch["id"])
		assert (batch["status"], batch["succeeded"], batch["charged"]) == ("COMPLETED", ITEMS, ITEMS * COST), batch

	def reads(self, _):
		if self.entities:
			self.call("read", 200, "GET", f"/entities/doc/{self.entities[-1]}")
		if self.runs:
			self.call("read", 200, "GET", f"/workflow-runs/{self.runs[-1]}")
		self.call("read", 200, "GET", f"/accounts/acc-{self.n}")

	def again(self, _):
		"""What was created under a key is answered again, to the byte, whatever the clocks say."""
		if self.last:
			path, body, key, first = self.last
			answer, replayed = self.call("replay", 201, "POST", path, body, key=key)
			assert replayed == "true" and answer == first, (replayed, answer, first)


def be_good():
	told = json.load(sys.stdin)
	end = time.monotonic() + told["seconds"]
	clients = [Client(told, n, end) for n in range(CLIENTS)]
	for c in clients:
		c.start()
	for c in clients:
		c.join()
	times = {kind: [t for c in clients for t in c.times[kind]] for kind in sorted({kind for c in clients for kind in c.times})}
	json.dump({"times": times, **{what: [x for c in clients for x in getattr(c, what)] for what in ("errors", "entities", "runs", "notes", "batches")}}, sys.stdout)


# ---- the evil one ---------------------------------------------------------------------------------------------------------------

class Evil:
	def __init__(self, told):
		self.told, self.count, self.tasks, self.random = told, collections.Counter(), [], random.Random(14)

	async def call(self, what, method, path, body, key="evil"):
		"""Whatever is answered is counted; nobody is disappointed."""
		data = json.dumps(body).encode()
		head = (f"{method} /api/v1{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {self.told['keys'][key]}\r\n"
			f"Content-Length: {len(data)}\r\n\r\n")
		await self.send(what, self.random.choice(self.told["ports"]), head.encode() + data)

	async def send(self, what, port, data):
		status = "none"
		try:
			reader, writer = await asyncio.open_connection("127.0.0.1", port)
			writer.write(data)
			answer = (await reader.read()).decode("latin-1")
			status = " ".join([answer.split(" ", 2)[1], *re.findall(r'"code":"(\w+)"', answer)[:1]])
			writer.close()
		except (OSError, IndexError):  # it was thrown out
			pass
		self.count[f"{what} {status}"] += 1

	def spawn(self, work):
		self.tasks.append(asyncio.ensure_future(work))

	async def every(self, seconds, most, work, *args):
		"""Begun every so often, whether or not those before it have come to their end."""
		under_way = set()
		while True:
			await asyncio.sleep(seconds * self.random.uniform(0.5, 1.5))
			under_way = {t for t in under_way if not t.done()}
			if len(under_way) < most:
				under_way.add(asyncio.ensure_future(work(*args)))

	async def start(self, workflow):
		await self.call(workflow, "POST", "/workflow-runs?wait=5m", {"definitionId": workflow, "input": {"n": self.random.randrange(1000)}})

	async def orphan(self):
		name = f"orphan-{self.random.getrandbits(60)}"
		await self.call("orphan made", "POST", "/entities/orphan", {"id": name})
		await self.call("orphan", "POST", f"/entities/orphan/{name}/steps/go", {})

	async def sell(self):
		"""Rows in a table of the user's are all in the workspace `default`."""
		n = self.random.randrange(1, 41)
		await self.call("sell", "POST", f"/entities/item/i{n}/steps/{self.random.choice(('sell', 'back'))}", {}, key="default")

	async def put(self):
		await self.call("put", "PUT", "/definitions/bad", run_of("bad", {"it": sql("DELETE FROM hx_history")}), key="admin")

	async def poll(self, n):
		while True:
			await self.call("poll", "POST", "/jobs/claim", {"queues": [f"empty-{n % 7}"], "owner": f"p{n}", "max": 1, "waitMs": self.random.randrange(20000, 60000)})

	async def half(self, n):
		"""Says that it sends 15 MiB (or 60 KiB), with a key sends nearly all of it, and waits until it is thrown out."""
		large, key = n % 3 == 0, n % 3 != 1
		length = 15 << 20 if large else 60 << 10
		head = "POST /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\n" + (f"X-API-Key: {self.told['keys']['evil']}\r\n" if key else "")
		while True:
			await self.send("half", self.told["ports"][n % len(self.told["ports"])], f"{head}Content-Length: {length}\r\n\r\n".encode() + b" " * (key * length * 14 // 15))
			await asyncio.sleep(self.random.uniform(5, 10))

	async def hold_locks(self):
		"""Another program in the middle of a transaction: 15 s of every 17."""
		psql = await asyncio.create_subprocess_exec("psql", "-qXAt", PG, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL)
		while True:  # it ends with its input, which is ours
			psql.stdin.write(b"BEGIN; UPDATE stock SET units = 0; UPDATE item SET status = status;\n")
			await asyncio.sleep(15)
			psql.stdin.write(b"ROLLBACK;\n")
			self.count["locks"] += 1
			await asyncio.sleep(2)

	async def live(self):
		stop = asyncio.Event()
		asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
		begin = {name: lambda seconds=seconds, most=most, work=work: self.spawn(self.every(seconds, most, *work)) for name, seconds, most, *work in (
			("deferred", 0.4, UNDER_WAY, self.start, "deferred"), ("orphan", 1, UNDER_WAY, self.orphan), ("sleeps", 0.5, UNDER_WAY, self.start, "sleeps"),
			("endless", 5, 1, self.start, "endless"), ("locked", 0.5, UNDER_WAY, self.start, "locked"), ("sell", 0.5, UNDER_WAY, self.sell),
			("reaches", 1, UNDER_WAY, self.start, "reaches"), ("put", 2, UNDER_WAY, self.put), ("refused", 0.5, UNDER_WAY, self.start, "refused"))}
		begin["polls"] = lambda: [self.spawn(self.poll(n)) for n in range(POLLS)]
		begin["halves"] = lambda: [self.spawn(self.half(n)) for n in range(HALVES)]
		begin["locks"] = lambda: self.spawn(self.hold_locks())
		for name in self.told["attacks"] or begin:
			begin[name]()
		await stop.wait()
		print(json.dumps(self.count), flush=True)
		os._exit(0)  # all connections end at once


def be_evil():
	os.nice(10)  # a stranger's processors are its own: on this machine its client gives way, and what the servers do for it does not
	asyncio.run(Evil(json.load(sys.stdin)).live())


# ---- the judge ------------------------------------------------------------------------------------------------------------------

def sql(text, **more):
	return {"kind": "sql", "statements": [{"name": "it", "sql": text}], **more}


def run_of(name, actions, retry=None):
	return {"workflow": name, "kind": "run", "actions": actions,
		"steps": [{"name": a, "type": "task", "action": a, "input": "{n: .input.n}", **({"retry": retry} if retry else {})} for a in actions]}


def entity_of(name, steps, **more):
	return {"workflow": name, "kind": "entity", "initial_status": steps[0][1],
		"status_types": sorted({s for step in steps for s in step[1:3]} | {s for step in steps for s in step[3].get("claim_state", ())}),
		"steps": [{"step_id": i + 1, "step_key": key, "status": a, "successful_state": b, **fields} for i, (key, a, b, fields) in enumerate(steps)], **more}


def definitions(url):
	call = lambda path, effect="keyed": {"kind": "http", "url": url + path, "effect": effect}
	twice = {"max_attempts": 2, "initial": "100ms"}
	yield entity_of("doc", [("close", "open", "closed", {"claim_state": ["closing", "open"], "action": "Close", "success_after_effect": ["Mail"], "lease": "20s"})],
		actions={"Close": call("/close", "claimed"), "Mail": call("/mail")})
	yield run_of("three", {"first": call("/step"), "second": {"kind": "noop"}, "last": call("/step")})
	yield run_of("note", {"note": sql("INSERT INTO note VALUES (:id, :input.n)")})
	yield {"workflow": "few", "kind": "batch", "actions": {"one": call("/item")}, "item_action": "one"}
	# and the evil one's
	yield run_of("deferred", {"orphan": sql("INSERT INTO child VALUES (:input.n, -1)")}, twice)
	yield entity_of("orphan", [("go", "new", "gone", {"action": "Orphan"})], actions={"Orphan": sql("INSERT INTO child VALUES (0, -1)")})
	yield run_of("sleeps", {"sleep": sql("SELECT pg_sleep(3600)")}, twice)
	yield run_of("endless", {"count": sql("WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c", timeout="1s")}, {"max_attempts": 1})
	yield run_of("locked", {"sell": sql("UPDATE stock SET units = units - 1", timeout="60s")}, twice)
	yield entity_of("item", [("sell", "new", "sold", {}), ("back", "sold", "new", {})], meta={"table": "item"})
	yield run_of("reaches", {"reach": sql("SELECT reach(:input.n)")}, twice)
	yield run_of("refused", {"refuse": call("/refuse")})


TABLES = """CREATE TABLE note (run text, n int);
CREATE TABLE parent (id int PRIMARY KEY); CREATE TABLE child (n int, parent int REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
CREATE TABLE stock (units int); INSERT INTO stock SELECT 100 FROM generate_series(1, 10);
CREATE TABLE item (id text PRIMARY KEY, status text, version bigint, updated_at bigint);
INSERT INTO item SELECT 'i' || n, 'new', 1, 0 FROM generate_series(1, 40) n;
CREATE FUNCTION reach(n bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
	IF n % 2 = 0 THEN DELETE FROM hx_history WHERE ctid = '(0,1)'; ELSE PERFORM set_config('synchronous_commit', 'off', false); END IF; END $$"""


def set_clock(file, seconds):
	new = file.with_suffix(".new")
	new.write_text(f"{seconds:+d}\n")
	new.rename(file)


def clock_env(file):
	return {"LD_PRELOAD": LIBRARY, "FAKETIME_TIMESTAMP_FILE": str(file), "FAKETIME_CACHE_DURATION": "1",
		"FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
		"FAKETIME_FORCE_MONOTONIC_FIX": "0"}  # by which waits of threads would end at once, all the time


def hapax(*args):
	return json.loads(subprocess.run([server.HAPAX, *args, "--db", PG, "--json"], check=True, stdout=subprocess.PIPE).stdout or "null")


def percentile(times, p):
	return sorted(times)[math.ceil(len(times) * p / 100) - 1] * 1000


class World:
	"""Two nodes, a service, three keys; `with` ends all of it."""

	def __enter__(self):
		self.dir = pathlib.Path(tempfile.mkdtemp())
		self.running, self.nodes = [], []
		hapax("db", "migrate")
		psql(TABLES)
		make = lambda workspace, scope: hapax("key", "create", "--workspace", workspace, "--scope", scope)["key"]
		self.keys = {"good": make("good", "admin"), "evil": make("evil", "execute"), "admin": make("evil", "admin"), "default": make("default", "execute")}
		self.service = self.start("service")
		self.service_port = int(self.service.stdout.readline())
		for d in definitions(f"http://127.0.0.1:{self.service_port}"):
			write(self.dir / "flows" / f"{d['workflow']}.json", d)
		day = {kind: "20h" for kind in ("runs", "batches", "jobs")}  # what a clock that is 25 h ahead would delete
		write(self.dir / "hapax.json", {"modules": {"doc": {"janitor": {"every": "2s", "stuck_after": "20s"}}}, "retention": day, "outbound": {"allow": ["127.0.0.0/8"]}})
		self.clocks = []
		for name in ("a", "b"):
			(self.dir / name).mkdir()
			self.clocks.append(self.dir / name / "clock")
			set_clock(self.clocks[-1], 0)
			self.nodes.append(Server(self.dir / name, "serve", "--db", PG, "--workflows", "../flows", "--config", "../hapax.json", "--node", name,
				env=clock_env(self.clocks[-1])))
		for n in range(CLIENTS):
			self.ask("POST", "/api/v1/accounts", {"id": f"acc-{n}", "balance": 10**9})
		return self

	def __exit__(self, *_):
		for p in self.running + [node.process for node in self.nodes]:
			p.kill()
			p.wait()
		shutil.rmtree(self.dir, ignore_errors=True)

	def start(self, name, **told):
		process = subprocess.Popen([sys.executable, __file__, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
		self.running.append(process)
		process.stdin.write(json.dumps(told).encode())
		process.stdin.close()
		return process

	def ask(self, method, path, body=None, node=0):
		status, _, text = self.nodes[node].call(method, path, body, [("Authorization", "Bearer " + self.keys["good"])])
		assert status in (200, 201), (method, path, status, text[:300])
		return text.decode()

	def metric(self, name):  # of both nodes together
		return sum(float(l.split()[1]) for n in (0, 1) for l in self.ask("GET", "/metrics", node=n).splitlines() if l.startswith(name + " "))

	def good(self, prefix, seconds, meanwhile=lambda: time.sleep(0.2)):
		process = self.start("good", prefix=prefix, seconds=seconds, ports=[n.port for n in self.nodes], key=self.keys["good"])
		end = time.monotonic() + seconds
		while time.monotonic() < end and process.poll() is None:
			meanwhile()
		return json.loads(process.stdout.read())

	def evil(self, attacks=()):  # none: all of them
		return self.start("evil", ports=[n.port for n in self.nodes], keys=self.keys, attacks=attacks)


def step_a_clock(world, seen):
	"""One node's clock is wrong for a few seconds, then right again for as long."""
	clock = random.choice(world.clocks)
	set_clock(clock, random.choice((-600, -90, 90, 600, 25 * 3600, -25 * 3600)))
	time.sleep(random.uniform(1.5, 4))
	seen["waiters"] = max(seen.get("waiters", 0), world.metric("hapax_job_waiters"))
	set_clock(clock, 0)
	time.sleep(random.uniform(1.5, 4))


def judge_times(quiet, loud, wrong):
	both = {"all": tuple([t for list_ in side["times"].values() for t in list_] for side in (quiet, loud))}
	both.update({kind: (quiet["times"][kind], loud["times"][kind]) for kind in quiet["times"]})
	for kind, (before, beside) in both.items():
		a, b = percentile(before, 99), percentile(beside, 99)
		print(f"# {kind:9} quiet {len(before):6} calls p50 {percentile(before, 50):6.1f} p99 {a:6.1f} max {max(before) * 1000:6.0f} ms;"
			f" hostile {len(beside):6} calls p50 {percentile(beside, 50):6.1f} p99 {b:6.1f} max {max(beside) * 1000:6.0f} ms; p99 x {b / a:.2f}")
		if kind == "all" and b > FACTOR * a:
			wrong.append(f"the p99 is {b / a:.2f} times that of the quiet")


def judge_effects(world, phases, wrong):
	"""Each logical effect has one key; what is only claimed was called once. Nothing else was done."""
	entities, runs, notes, batches = ([x for p in phases for x in p[what]] for what in ("entities", "runs", "notes", "batches"))
	expected = {f"/close {id} close None" for id in entities} | {f"/mail {id} close None" for id in entities}
	expected |= {f"/step {id} {step} None" for id in runs for step in ("first", "last")} | {f"/item {id} item {n}" for id in batches for n in range(ITEMS)}

	def effects():
		with urllib.request.urlopen(f"http://127.0.0.1:{world.service_port}/", timeout=60) as all_:
			return {name: keys for name, keys in json.load(all_).items() if not name.startswith("/refuse")}

	try:  # after-effects come after the answer
		until(lambda: expected <= set(effects()), "all effects", 60)
	except AssertionError:
		wrong.append(f"not done: {sorted(expected - set(effects()))[:5]}")
	done = effects()
	wrong += [f"done, and nobody knows of it: {name}" for name in sorted(set(done) - expected)[:5]]
	wrong += [f"done under several keys: {name} {keys}" for name, keys in done.items() if len(keys) > 1][:5]
	wrong += [f"called twice: {name} {keys}" for name, keys in done.items() if name.startswith("/close") and sum(keys.values()) > 1][:5]
	again = sum(sum(keys.values()) - 1 for keys in done.values())
	print(f"# {len(entities)} entities, {len(runs) + len(notes)} runs, {len(batches)} batches; {len(done)} effects, {again} calls were repeated under their key")
	rows = psql("SELECT count(*) || ' ' || count(DISTINCT run) FROM note")
	if rows != f"{len(notes)} {len(notes)}":
		wrong.append(f"notes of {len(notes)} runs: {rows}")
	statuses = psql("SELECT s.status, count(*) FROM hx_run r JOIN hx_subject s ON s.id = r.subject WHERE r.workspace = 'good' GROUP BY 1")
	if statuses != f"COMPLETED|{len(runs) + len(notes)}":
		wrong.append(f"{len(runs) + len(notes)} runs of the good one: {statuses}")
	paid = sum(10**9 - json.loads(world.ask("GET", f"/api/v1/accounts/acc-{n}"))["balance"] for n in range(CLIENTS))
	if paid != len(batches) * ITEMS * COST:
		wrong.append(f"{len(batches)} batches paid {paid}")


def judge_evil(world, count, seen, wrong):
	"""It was hostile indeed, and did nothing but fail."""
	print("# evil: " + ", ".join(f"{n} {what}" for what, n in sorted(count.items())))
	numbers = {name: world.metric(f"hapax_{name}_total") for name in ("units_timed_out", "units_aside", "clock_jumps", "bodies_crowded_out")}
	print(f"# polls waiting at once: {seen.get('waiters', 0):.0f}; " + ", ".join(f"{name} {n:.0f}" for name, n in numbers.items()))
	failed = dict(l.split("|") for l in psql("""SELECT r.workflow, count(*) FROM hx_run r JOIN hx_subject s ON s.id = r.subject
		WHERE r.workspace = 'evil' AND s.status = 'FAILED' GROUP BY 1""").splitlines())
	print(f"# evil runs that failed: {failed}")
	wrong += [f"the evil one did not do its part: {name}" for name in ("deferred", "reaches", "refused") if not int(failed.get(name, 0))]
	wrong += [f"the evil one did not do its part: {name}" for name in ("units_timed_out", "clock_jumps", "bodies_crowded_out") if not numbers[name]]
	if seen.get("waiters", 0) < POLLS * 0.9 or not count.get("half 401 UNAUTHENTICATED") or not count.get("locks") or not count.get("put 422 DEFINITION_INVALID"):
		wrong.append("the evil one did not do its part: polls, half-sent bodies, locks, definitions")
	if psql("SELECT count(*) FROM child") != "0":
		wrong.append("a row that breaks a constraint is there")


def judge_end(world, wrong):
	for node in world.nodes:
		node.process.send_signal(signal.SIGTERM)
	codes = [node.process.wait(60) for node in world.nodes]
	if codes != [0, 0]:
		wrong.append(f"the nodes ended with {codes}")
	audit = subprocess.run([server.HAPAX, "audit", "--db", PG], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
	print("# audit: " + audit.stdout.decode().strip().splitlines()[-1])
	if audit.returncode:
		wrong.append("the audit: " + audit.stdout.decode())


def judge():
	wrong, seen = [], {}
	with World() as world:
		try:
			warm = world.good("warm", 5)
			quiet = world.good("quiet", QUIET)
			evil = world.evil()
			loud = world.good("loud", SECONDS, lambda: step_a_clock(world, seen))
			evil.terminate()
			count = json.loads(evil.stdout.read())
			phases = (warm, quiet, loud)
			errors = [e for p in phases for e in p["errors"]]
			wrong += errors[:10]
			print(f"# {SECONDS} s beside it, after {QUIET} s of quiet; {len(errors)} of the good one's calls went wrong")
			judge_times(quiet, loud, wrong)
			judge_effects(world, phases, wrong)
			judge_evil(world, count, seen, wrong)
			judge_end(world, wrong)
		except Exception:
			wrong.append(traceback.format_exc())
		print("not ok hostile_neighbour" if wrong else "ok hostile_neighbour")
		for w in wrong:
			print(w)
		if wrong:
			for node in world.nodes:
				print(node.log, node.text()[-1500:])


if LIBRARY is None:
	print("not ok hostile_neighbour: there is no libfaketime (the package faketime)")
else:
	{"judge": judge, "service": serve_actions, "good": be_good, "evil": be_evil}[sys.argv[1] if len(sys.argv) > 1 else "judge"]()
