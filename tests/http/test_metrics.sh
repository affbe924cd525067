#!/usr/bin/env bash
# The numbers of `hapax serve` and `hapax gate`: their form is Prometheus', docs/operations.md has all of them and no others, and
# they tell what happens.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import json, math, os, re, sqlite3, subprocess, threading, time
import server
from server import Server, Service, until, write

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")


def parse(text):
	"""Families by name: (type, help, {(sample, labels): value}). Stricter than Prometheus is: every family has both comments,
	in this order, its samples behind them and nowhere else, and no sample comes twice."""
	assert text.endswith("\n") and "\r" not in text, "lines end with a line feed"
	families, family = {}, None
	for line in text[:-1].split("\n"):
		if m := re.fullmatch(rf"# HELP ({NAME}) (\S.*)", line):
			assert m[1] not in families, f"{m[1]} comes twice"
			assert "\\" not in m[2], f"{m[1]}: an escape in its help"
			family = m[1]
			families[family] = [None, m[2], {}]
		elif m := re.fullmatch(rf"# TYPE ({NAME}) (counter|gauge|histogram)", line):
			assert m[1] == family and families[family][0] is None and not families[family][2], line
			families[family][0] = m[2]
		else:
			m = SAMPLE.fullmatch(line)
			assert m and family and families[family][0], f"not a sample: {line!r}"
			kind, _, samples = families[family]
			assert m[1] == family or (kind == "histogram" and m[1] in [family + s for s in ("_bucket", "_sum", "_count")]), line
			assert (m[1], m[2]) not in samples, f"twice: {line}"
			samples[m[1], m[2]] = float(m[3])
			assert math.isfinite(samples[m[1], m[2]]) and samples[m[1], m[2]] >= 0, line
	for name, (kind, _, samples) in families.items():
		assert kind, f"{name} has no type"
		assert (kind == "counter") == name.endswith("_total"), f"{name} is a {kind}"
		if kind == "histogram":
			check_histogram(name, samples)
	return families


def check_histogram(name, samples):
	"""One for each of the labels that stand in front of `le`."""
	for of in dict.fromkeys(labels for n, labels in samples if n == name + "_count"):
		check_one_histogram(name, of, samples)


def check_one_histogram(name, of, samples):
	le = re.compile(re.escape(of + "," if of else "") + r'le="([^"]*)"')
	buckets = [(float(m[1]), value) for (n, labels), value in samples.items() if n == name + "_bucket" and (m := le.fullmatch(labels))]
	assert len(buckets) > 3 and buckets == sorted(buckets), f"{name}: its buckets do not rise"
	assert [v for _, v in buckets] == sorted(v for _, v in buckets), f"{name}: it is not cumulative"
	assert buckets[-1][0] == math.inf and buckets[-1][1] == samples[name + "_count", of], f"{name}: +Inf is not its count"
	assert (samples[name + "_sum", of] > 0) == (samples[name + "_count", of] > 0), name


def metrics(hapax):
	status, head, body = hapax.call("GET", "/metrics")
	assert status == 200 and "Content-Type: text/plain; version=0.0.4" in head
	return parse(body.decode())


def value(hapax, name, labels=None):
	for family in metrics(hapax).values():
		if (name, labels) in family[2]:
			return family[2][name, labels]


def documented(heading):
	"""The rows of the table behind this heading: {name: (type, help)}."""
	text = (server.ROOT / "docs/operations.md").read_text()
	part = text.split(f"\n{heading}\n", 1)[1].split("\n#", 1)[0]
	rows = re.findall(r"^\| `(\w+)(?:\{[\w,]+\})?` \| (\w+) \| (.*) \|$", part, re.M)
	assert len({name for name, _, _ in rows}) == len(rows), "one comes twice"
	return {name: (kind, help) for name, kind, help in rows}


def compare(families, heading):
	served = {name: (kind, help) for name, (kind, help, _) in families.items()}
	told = documented(heading)
	assert served == told, "\n".join(["docs/operations.md, " + heading] +
		[f"| `{n}` | {served[n][0]} | {served[n][1]} | is served" for n in served if told.get(n) != served[n]] +
		[f"`{n}` {told[n]} is told" for n in told if served.get(n) != told[n]])


ORDER = {"workflow": "order", "kind": "run", "actions": {"pay": {"kind": "http", "effect": "keyed"}},
	"steps": [{"name": "pay", "type": "task", "action": "pay"}]}


def start(dir, service, db="sqlite:h.db"):
	ORDER["actions"]["pay"]["url"] = service.url + "/pay"
	write(dir / "flows" / "order.json", ORDER)
	return Server(dir, "serve", "--db", db, "--workflows", "flows")


def test_serve_has_the_form_and_the_pages_have_all_of_it(dir):
	with Service() as service, start(dir, service) as hapax:
		compare(metrics(hapax), "### Metrics of hapax serve")


def test_transactions_are_measured(dir):
	with Service() as service, start(dir, service) as hapax:
		before = metrics(hapax)
		for i in range(20):
			hapax.json("POST", "/api/v1/workflow-runs?wait=20s", {"definitionId": "order"}, status=201)
		after = metrics(hapax)
		for name in ("hapax_commit_seconds", "hapax_batch_units"):
			for sample in (name + "_sum", name + "_count"):
				assert after[name][2][sample, None] > before[name][2][sample, None], sample
		grown = {n: after[n][2][n + "_count", None] - before[n][2][n + "_count", None] for n in ("hapax_commit_seconds", "hapax_batch_units")}
		assert grown["hapax_commit_seconds"] == grown["hapax_batch_units"] >= 40, grown # a run is created and begun, and ended
		assert after["hapax_commit_seconds"][2]["hapax_commit_seconds_sum", None] < 60


def test_many_at_once_make_larger_transactions(dir):
	with Service() as service, start(dir, service) as hapax:
		threads = [threading.Thread(target=lambda: [hapax.json("POST", "/api/v1/jobs", {"queue": "q"}, status=201) for _ in range(20)])
			for _ in range(16)]
		for t in threads: t.start()
		for t in threads: t.join()
		units = metrics(hapax)["hapax_batch_units"][2]
		assert units["hapax_batch_units_sum", None] > units["hapax_batch_units_count", None] > units["hapax_batch_units_bucket", 'le="1"']


def test_what_waits_is_told(dir):
	with Service() as service, start(dir, service) as hapax:
		service.hold.clear()
		for i in range(3):
			hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "order"}, status=201)
		until(lambda: value(hapax, "hapax_actions_in_flight") == 3, "three calls under way")
		until(lambda: value(hapax, "hapax_actions_waiting") == 0, "no call that waits")
		until(lambda: value(hapax, "hapax_lane_queue_depth") == 0, "a lane with nothing to do")
		service.hold.set()
		until(lambda: value(hapax, "hapax_actions_in_flight") == 0, "the end of all calls")
		until(lambda: value(hapax, "hapax_connections_open") == 1, "no connection but this one")
		assert value(hapax, "hapax_store_up") == 1


def test_the_process_is_told(dir):
	with Service() as service, start(dir, service) as hapax:
		proc = f"/proc/{hapax.process.pid}/"
		version = subprocess.run([server.HAPAX, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
		assert value(hapax, "hapax_build_info", f'version="{version}"') == 1
		fields = open(proc + "stat").read().rsplit(")", 1)[1].split()
		boot = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
		started = value(hapax, "process_start_time_seconds")
		assert abs(started - boot - int(fields[19]) / os.sysconf("SC_CLK_TCK")) < 2, started
		assert value(hapax, "process_start_time_seconds") == started
		resident, told = int(fields[21]) * os.sysconf("SC_PAGESIZE"), value(hapax, "process_resident_memory_bytes")
		assert resident / 2 < told < resident * 2, (resident, told)
		cpu = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
		assert max(cpu - 0.1, 0) < value(hapax, "process_cpu_seconds_total") < cpu + 60
		assert f"Max open files {value(hapax, 'process_max_fds'):.0f} " in re.sub(" +", " ", open(proc + "limits").read())
		before = value(hapax, "process_open_fds")
		clients = [hapax.open() for _ in range(10)]
		until(lambda: before + 8 <= value(hapax, "process_open_fds") <= len(os.listdir(proc + "fd")) + 2, "ten more descriptors")
		for c in clients: c.close()


def test_answers_are_counted_by_their_status(dir):
	with Service() as service, start(dir, service) as hapax:
		def classes():
			family = metrics(hapax)["hapax_responses_total"][2]
			return [family["hapax_responses_total", f'status="{i}xx"'] for i in (2, 3, 4, 5)]
		before = classes()
		assert hapax.call("GET", "/nowhere")[0] == 404
		assert hapax.raw(b"GET / HTTP/1.1\r\n\r\n")[0] == 400
		assert hapax.call("BREW", "/healthz")[0] == 501
		assert hapax.call("GET", "/healthz")[0] == 200
		assert classes() == [before[0] + 2, before[1], before[2] + 2, before[3] + 1] # the scrape before is one of them


def held_for(seconds, hapax):
	"""Not less: what is measured meanwhile took as long."""
	until(lambda: value(hapax, "hapax_actions_in_flight") == 1, "the call")
	end = time.monotonic() + seconds
	until(lambda: time.monotonic() > end, "the time to pass")


def seconds_of(hapax, name, labels=None):
	samples = metrics(hapax)[name][2]
	return samples[name + "_count", labels], samples[name + "_sum", labels]


def test_calls_of_actions_are_measured(dir):
	with Service() as service, start(dir, service) as hapax:
		service.hold.clear()
		hapax.json("POST", "/api/v1/workflow-runs", {"definitionId": "order"}, status=201)
		held_for(0.2, hapax)
		assert seconds_of(hapax, "hapax_action_seconds", 'kind="http"') == (0, 0)
		service.hold.set()
		until(lambda: seconds_of(hapax, "hapax_action_seconds", 'kind="http"')[0] == 1, "its answer")
		assert 0.2 <= seconds_of(hapax, "hapax_action_seconds", 'kind="http"')[1] < 60
		assert seconds_of(hapax, "hapax_action_seconds", 'kind="exec"') == (0, 0)


# A transaction of somebody else's makes one request slow. Who asked to wait is served well by being kept waiting.
def test_requests_are_measured_but_not_those_that_wait(dir):
	with Service() as service, start(dir, service) as hapax:
		before = seconds_of(hapax, "hapax_request_seconds")
		hapax.json("POST", "/api/v1/jobs/claim", {"queues": ["q"], "owner": "w", "waitMs": 1}, status=200)
		hapax.json("POST", "/api/v1/workflow-runs?wait=20s", {"definitionId": "order"}, status=201)
		assert seconds_of(hapax, "hapax_request_seconds")[0] == before[0] + 1 # the scrape before
		other = sqlite3.connect(dir / "h.db", isolation_level=None)
		other.execute("BEGIN IMMEDIATE")
		slow = threading.Thread(target=lambda: hapax.json("POST", "/api/v1/jobs", {"queue": "q"}, status=201))
		slow.start()
		until(lambda: value(hapax, "hapax_lane_tasks") >= 1, "the request")
		end = time.monotonic() + 0.2
		until(lambda: time.monotonic() > end, "the time to pass")
		before = seconds_of(hapax, "hapax_request_seconds")
		other.execute("ROLLBACK")
		other.close()
		slow.join()
		after = seconds_of(hapax, "hapax_request_seconds")
		assert after[0] == before[0] + 2 and 0.2 <= after[1] - before[1] < 60, (before, after)


# While the store is busy with somebody else, what comes has to wait, and is seen to.
def test_what_waits_for_the_store_is_told(dir):
	with Service() as service, start(dir, service) as hapax:
		other = sqlite3.connect(dir / "h.db", isolation_level=None)
		other.execute("BEGIN IMMEDIATE")
		threads = [threading.Thread(target=lambda: hapax.json("POST", "/api/v1/jobs", {"queue": "q"}, status=201)) for _ in range(8)]
		threads[0].start()
		until(lambda: value(hapax, "hapax_lane_tasks") == 1, "the first")
		for t in threads[1:]: t.start()
		until(lambda: value(hapax, "hapax_lane_tasks") == 8 and value(hapax, "hapax_lane_queue_depth") >= 1, "tasks that wait")
		other.execute("ROLLBACK")
		other.close()
		for t in threads: t.join()
		until(lambda: value(hapax, "hapax_lane_tasks") == value(hapax, "hapax_lane_queue_depth") == 0, "an empty lane")
		slow = metrics(hapax)["hapax_commit_seconds"][2]
		assert slow["hapax_commit_seconds_bucket", 'le="0.0025"'] < slow["hapax_commit_seconds_count", None]


def test_what_is_due_is_counted(dir):
	with Service() as service, start(dir, service) as hapax:
		for i in range(3):
			hapax.json("POST", "/api/v1/jobs", {"queue": "stock"}, status=201)
		hapax.json("POST", "/api/v1/jobs", {"queue": "stock", "runAt": "2099-01-01T00:00:00.000Z"}, status=201)
		until(lambda: value(hapax, "hapax_due", 'kind="jobs",queue="stock"') == 3, "three due jobs")
		for kind in ("runs", "batches", "after_effects"):
			assert value(hapax, "hapax_due", f'kind="{kind}",queue=""') == value(hapax, "hapax_due_age_seconds", f'kind="{kind}",queue=""') == 0
		assert 0 < value(hapax, "hapax_due_age_seconds", 'kind="jobs",queue="stock"') < 600


def due_jobs(hapax):
	"""How many there are in all, and under how many names."""
	jobs = [n for (_, labels), n in metrics(hapax)["hapax_due"][2].items() if labels.startswith('kind="jobs"')]
	return sum(jobs), len(jobs)


def names_fit(dir, db):
	"""Each byte of them escaped, and as many as are told by name: nothing is cut off."""
	with Service() as service, start(dir, service, db) as hapax:
		for i in range(60):
			hapax.json("POST", "/api/v1/jobs", {"queue": '"' * 252 + f"{i:03}"}, status=201)
		until(lambda: due_jobs(hapax) == (60, 51), "the jobs")
		compare(metrics(hapax), "### Metrics of hapax serve")


def test_the_longest_names_fit(dir):
	names_fit(dir, "sqlite:h.db")


def test_the_longest_names_fit_on_postgres(dir):
	if url := os.environ.get("HAPAX_TEST_PG"):
		schema = f"metrics_{os.getpid()}"
		try:
			names_fit(dir, f"{url}{'&' if '?' in url else '?'}schema={schema}")
		finally:
			subprocess.run(["psql", "-qX", url, "-c", f"DROP SCHEMA IF EXISTS {schema} CASCADE"], stderr=subprocess.DEVNULL)


def test_a_workspace_does_not_learn_the_names_of_anothers_queues(dir):
	with Service() as service, start(dir, service) as hapax:
		headers = lambda key: [("Authorization", "Bearer " + key)]
		keys = {scope: subprocess.run([server.HAPAX, "key", "create", "--db", "sqlite:h.db", "--scope", scope, "--workspace", workspace],
			cwd=dir, capture_output=True, text=True, check=True).stdout.split()[-1]
			for scope, workspace in (("read", "mine"), ("execute", "other"), ("admin", "mine"))}
		until(lambda: hapax.call("GET", "/metrics")[0] == 401, "keys that are asked for")
		for queue in ("of-others", "of-others", "and-more"):
			hapax.json("POST", "/api/v1/jobs", {"queue": queue}, headers(keys["execute"]), status=201)
		told = {}
		for scope in ("admin", "read", "execute"):
			def look():
				told[scope] = hapax.call("GET", "/metrics", headers=headers(keys[scope]))[2].decode()
				return 'hapax_due{kind="jobs",queue="' in told[scope] and 'hapax_due{kind="jobs",queue=""} 0' not in told[scope]
			until(look, "the jobs to be counted")
		assert 'hapax_due{kind="jobs",queue="of-others"} 2\n' in told["admin"] and 'queue="(all)"' not in told["admin"]
		for scope in ("read", "execute"):
			assert 'hapax_due{kind="jobs",queue="(all)"} 3\n' in told[scope] and told[scope].count('kind="jobs"') == 2
			assert "of-others" not in told[scope] and "and-more" not in told[scope]
			assert 'hapax_due{kind="runs",queue=""} 0\n' in told[scope]


def test_what_waits_for_a_person_is_counted_whole(dir):
	"""However many workflows there are: those that have no name of their own are told together, of each kind."""
	with Service() as service, start(dir, service) as hapax:
		other = sqlite3.connect(dir / "h.db", isolation_level=None, timeout=60)
		for i in range(70):
			other.execute("INSERT INTO hx_subject (id, kind, status, version, op, updated_at, seq, head) VALUES (?, 2, 'PARKED', 1, 1, 1, 1, x'')", (i + 1,))
			other.execute("INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload, ended_at, error, repeatable)"
				" VALUES (?, 'w', ?, ?, 'a', '', '{}', 1, 'no', 0)", (i + 1, "after-effects" if i % 2 else "q", f"w{i}"))
		other.close()
		def counted():
			samples = metrics(hapax)["hapax_attention"][2]
			of = lambda kind: sum(n for (_, labels), n in samples.items() if f'kind="{kind}"' in labels)
			return len(samples), of("parked_job"), of("parked_after_effect")
		until(lambda: counted() == (51, 35, 35), "seventy that wait")
		assert value(hapax, "hapax_attention", 'kind="parked_job",workflow="(others)"') == 20
		assert value(hapax, "hapax_attention_age_seconds", 'kind="parked_job",workflow="(others)"') > 0


def test_no_tenant_hides_what_else_is_due(dir):
	"""Queues are invented for nothing: however many there are, and however full, the other kinds are told."""
	with Service() as service, start(dir, service) as hapax:
		other = sqlite3.connect(dir / "h.db", isolation_level=None, timeout=60)
		other.execute("INSERT INTO hx_job (subject, workspace, queue, workflow, action, effect_key, payload, due_at, repeatable)"
			" VALUES (1, '', 'after-effects', '', '', '', '{}', 1, 0)")  # has no subject, so it stays due
		other.close()
		for i in range(120):
			hapax.json("POST", "/api/v1/jobs", {"queue": f"q{i % 60}"}, status=201)
		until(lambda: due_jobs(hapax)[0] == 120, "the jobs")
		assert due_jobs(hapax) == (120, 50) and value(hapax, "hapax_due", 'kind="jobs",queue="(others)"') == 22, metrics(hapax)["hapax_due"]
		assert value(hapax, "hapax_due", 'kind="after_effects",queue="after-effects"') == 1


def test_a_run_that_fails_is_counted_and_told(dir):
	with Service() as service, start(dir, service) as hapax:
		hapax.json("PUT", "/api/v1/definitions/fails", {"workflow": "fails", "kind": "run",
			"actions": {"Go": {"kind": "http", "url": service.url + "/gone", "outcomes": {"200-299": "failed"}}},
			"steps": [{"name": "go", "type": "task", "action": "Go"}]})
		run = hapax.json("POST", "/api/v1/workflow-runs?wait=20s", {"definitionId": "fails"}, status=201)["run"]
		assert run["status"] == "FAILED", run
		until(lambda: value(hapax, "hapax_runs_total", 'workflow="fails",status="FAILED"') == 1, "a failed run")
		assert value(hapax, "hapax_runs_total", 'workflow="fails",status="COMPLETED"') == 0
		until(lambda: value(hapax, "hapax_attention", 'kind="failed_run",workflow="fails"') == 1, "one that waits for a person")
		assert 0 <= value(hapax, "hapax_attention_age_seconds", 'kind="failed_run",workflow="fails"') < 600
		item, = hapax.json("GET", "/api/v1/attention")["items"]
		assert (item["kind"], item["id"], item["workflow"], item["step"], item["status"]) == ("failed_run", run["id"], "fails", "go", "FAILED"), item
		hapax.await_log("a run has failed")
		told = [line for line in map(json.loads, hapax.text().splitlines()) if line["message"].startswith("a run has failed")]
		assert [(line["id"], line["workflow"], line["step"]) for line in told] == [(run["id"], "fails", "go")], told


def test_an_error_is_told_as_it_was_written(dir):
	"""Whatever it looks like: what begins like JSON, and what is JSON, but not ours."""
	with Service() as service, start(dir, service) as hapax:
		errors = ["{no JSON", "{}", '{"code":5}', '{"message":"mine","step":{"of":"theirs"}}', "plain"]
		for error in errors:
			hapax.json("POST", "/api/v1/jobs", {"queue": "q"}, status=201)
			job, = hapax.json("POST", "/api/v1/jobs/claim", {"queues": ["q"], "owner": "w"}, status=200)["jobs"]
			hapax.json("POST", f"/api/v1/jobs/{job['id']}/fail",
				{"owner": "w", "fence": job["fence"], "error": error, "retryable": False}, status=200)
		items = hapax.json("GET", "/api/v1/attention")["items"]
		assert sorted((item["kind"], item["step"], item["detail"]) for item in items) == sorted(("parked_job", "q", e) for e in errors), items


def test_gate_has_the_form_and_the_pages_have_all_of_it(dir):
	with Service() as service:
		with Server(dir, "gate", "--upstream", service.url, "--store", "sqlite:g.db", "--admin", "127.0.0.1:0") as gate:
			admin = re.search(r'"admin":"127.0.0.1:(\d+)"', gate.text())
			outside, gate.port = gate.port, int(admin[1])
			compare(metrics(gate), "### Metrics of hapax gate")
			gate.port = outside
			for status in ("created", "replayed"):
				head = gate.call("POST", "/pay", {}, [("Idempotency-Key", "k")])[1]
				assert f"Idempotency-Status: {status}" in head, head
			gate.port = int(admin[1])
			until(lambda: value(gate, "hapax_gate_outcomes_total", 'outcome="created"') == value(gate, "hapax_gate_outcomes_total", 'outcome="replayed"') == 1, "both outcomes")


server.run(globals())
END
