#!/usr/bin/env bash
# The dashboard before a store with 1,000,000 runs (HAPAX_RUNS has another number), on both stores: how long its first page takes, in a real
# Chromium; that thousands of changes a second leave it free to answer; that an idle page, and 200 of them, cost the server nothing that
# shows. Times of the best of several tries; what the server costs is in its own processor time, whatever else the machine does.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support:tests/http exec python3 - "$@" <<'END2'
import json, os, select, sqlite3, statistics, subprocess, threading, time, urllib.parse
import browser
import dashboard_scene as scenes
import server
from server import until

PG = os.environ.get("HAPAX_TEST_PG")
RUNS = int(os.environ.get("HAPAX_RUNS", "1000000"))
FIRST_PAGE_MS, LONGEST_MS = 300, 100
IDLE_MS_A_SECOND, OPEN_MS_A_SECOND = 5, 10  # of processor time
WATCH = "new MutationObserver(() => { if (!window.shown && document.querySelector(%s)) window.shown = performance.now() }).observe(document, {childList: true, subtree: true})"
LONG = "window.longest = 0, new PerformanceObserver(l => l.getEntries().forEach(e => (window.longest = Math.max(longest, e.duration)))).observe({type: 'longtask'})"


class Sql:
	def __init__(self, dir, url):
		self.file = dir / "h.db" if url.startswith("sqlite") else None
		self.url = url

	def rows(self, text):
		if self.file:
			with sqlite3.connect(self.file, isolation_level=None) as db:
				return [[str(v) for v in row] for row in db.execute(text).fetchall()]
		out = subprocess.run(["psql", "-qXAt", "-F", "\t", self.url, "-c", text], check=True, capture_output=True, text=True).stdout
		return [line.split("\t") for line in out.splitlines()]

	def columns(self, table):
		if self.file:
			return [row[1] for row in self.rows(f"PRAGMA table_info({table})")]
		return [row[0] for row in self.rows(f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}' ORDER BY ordinal_position")]


def multiply(sql, workflow):
	"""The one run of this workflow, as often as is wanted; its copies are older than it."""
	((run,),) = sql.rows(f"SELECT subject FROM hx_run WHERE workflow = '{workflow}'")
	((first,),) = sql.rows("SELECT min(id) FROM hx_subject")
	base = int(first) - 2 * RUNS
	numbers = f"(WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {RUNS}) SELECT i FROM c)"
	for table, id in (("hx_subject", "id"), ("hx_run", "subject")):
		names = sql.columns(table)
		values = ", ".join(f"{base} + n.i" if c == id else "'key-' || n.i" if c == "run_key" else f"o.{c}" for c in names)
		sql.rows(f"INSERT INTO {table} ({', '.join(names)}) SELECT {values} FROM {numbers} n, {table} o WHERE o.{id} = {run}")
	if not sql.file:
		sql.rows("ANALYZE")


def processor_ms(hapax):
	fields = open(f"/proc/{hapax.process.pid}/stat").read().rsplit(")", 1)[1].split()
	return (int(fields[11]) + int(fields[12])) * 1000 // os.sysconf("SC_CLK_TCK")


def first_page(chromium, url, way, selector):
	best = []
	for _ in range(8):
		page = chromium.page("about:blank")
		page.ask("Page.addScriptToEvaluateOnNewDocument", source=WATCH % json.dumps(selector))
		page.open(url + way)
		best.append(page.until("window.shown", f"{way} shows {selector}"))
		page.close()
	return min(best), max(best)


class Pushers:
	"""Two that push jobs as quickly as they are taken, 500 at once; each job is a change."""

	def __init__(self, hapax, seconds):
		self.body = json.dumps([{"queue": "q"}] * 500).encode()
		self.end, self.n, self.took = time.monotonic() + seconds, 0, []
		threads = [threading.Thread(target=self.go, args=[hapax]) for _ in range(2)]
		for thread in threads:
			thread.start()
		for thread in threads:
			thread.join()
		self.rate = self.n / seconds

	def go(self, hapax):
		while (began := time.monotonic()) < self.end:
			status, _, text = hapax.call("POST", "/api/v1/jobs", self.body)
			assert status == 201, text
			self.took.append(time.monotonic() - began)
			self.n += 500


def cost_of_pushes(hapax, seconds=6):
	"""At 10,000 changes a second: processor time of the server for 1000 of them, and how long 500 take, in ms."""
	body, took, before, began = json.dumps([{"queue": "q"}] * 500).encode(), [], processor_ms(hapax), time.monotonic()
	for n in range(20 * seconds):
		time.sleep(max(0, began + n / 20 - time.monotonic()))
		pushed = time.monotonic()
		assert hapax.call("POST", "/api/v1/jobs", body)[0] == 201
		took.append(1000 * (time.monotonic() - pushed))
	return (processor_ms(hapax) - before) / (len(took) / 2), statistics.median(took)


def idle_cost(hapax, seconds=10):
	before = processor_ms(hapax)
	time.sleep(seconds)
	return (processor_ms(hapax) - before) / seconds


def asked_at_a_change(page, hapax):
	"""What a page asks the server for when it has heard of a change."""
	page.settle()
	before = len(page.requests)
	hapax.json("POST", "/api/v1/jobs", [{"queue": "one"}], status=201)
	until(lambda: len(page.requests) > before, "the page asks")
	page.settle()
	return [urllib.parse.urlsplit(r["url"]).path + "?" + urllib.parse.urlsplit(r["url"]).query for r in page.requests[before:] if "/api/" in r["url"]]


class Watchers(threading.Thread):
	"""Pages that are open and looked at: each hears of changes, and asks a second after it what its page asks, over one connection. `first` is
	what it asks when nothing was asked for long: each tenth time, since what costs more rests for ten seconds."""

	def __init__(self, hapax, n, first=(), again=()):
		super().__init__(daemon=True)
		self.first, self.asks = ("".join(f"GET {way} HTTP/1.1\r\nHost: localhost\r\n\r\n" for way in ways).encode() for ways in (first, again))
		self.streams, self.calls, self.rounds, self.over = [hapax.open() for _ in range(n)], [hapax.open() for _ in range(n)], 0, False
		for stream in self.streams:
			stream.sendall(b"GET /api/v1/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if self.asks:
			self.start()

	def run(self):
		poll, at = select.epoll(), {s.fileno(): s for s in self.streams + self.calls}
		due = {}  # which of them asks when
		for fd in at:
			poll.register(fd, select.EPOLLIN)
		places = {s.fileno(): i for i, s in enumerate(self.streams)}
		while not self.over:
			for fd, _ in poll.poll(0.05):
				heard = at[fd].recv(1 << 18)
				if fd in places and b"data: " in heard:
					due.setdefault(places[fd], time.monotonic() + 1)
			now = time.monotonic()
			for i in [i for i, when in due.items() if when <= now]:
				del due[i]
				self.calls[i].sendall(self.asks if (self.rounds + i) % 10 else self.first)
				self.rounds += 1

	def close(self):
		self.over = True
		if self.asks:
			self.join()
		for socket in self.streams + self.calls:
			socket.close()


class Verdicts:
	"""Each claim with its number; what does not hold is said at the end, all of it."""

	def __init__(self, name):
		self.name, self.missed = name, []

	def say(self, claim, value, bound, unit):
		good = value <= bound
		print(f"# {self.name}: {claim}: {value:.1f} {unit}, at most {bound:g}: {'holds' if good else 'MISSED'} ({value / bound:.2f} of it)", flush=True)
		if not good:
			self.missed.append(f"{claim}: {value:.1f} {unit}")


def first_pages(verdicts, chromium, here, run):
	for way, selector in (("", "article.item"), ("#/runs", "tr[data-row]"), ("#/jobs", "tr[data-row]"), (f"#/runs/{run}", ".waterfall .step"), ("#/workflows/shipment", ".picture img")):
		took, slowest = first_page(chromium, here, way, selector)
		verdicts.say(f"the first page with {RUNS} runs, {way.split('/run_')[0] or 'inbox'} (the slowest of 8: {slowest:.0f} ms)", took, FIRST_PAGE_MS, "ms")


def changes(verdicts, chromium, hapax, here):
	"""Thousands of changes a second, before pages that show much of what changes."""
	for way, selector in (("#/jobs", "tr[data-row]"), ("#/runs", "tr[data-row]"), ("", "article.item")):
		page = chromium.page(here + way)
		page.until(f"document.querySelector('button.live.live') && document.querySelector({json.dumps(selector)})", "the page is live")
		page.settle()
		page.js(LONG)
		asked, rate = len(page.requests), Pushers(hapax, 8).rate
		assert (asked := len(page.requests) - asked) >= 4, f"{way} has asked {asked} times: it was not looked at"
		verdicts.say(f"the longest task of {way or 'inbox'}, which asked {asked} times, at {rate:.0f} changes a second (0: none above 50 ms)", page.js("longest"), LONGEST_MS, "ms")
		page.close()


def idle(verdicts, chromium, hapax, here):
	"""After what was pushed has been told, and without anything that changes."""
	alone = idle_cost(hapax)
	page = chromium.page(here + "#/jobs")
	page.until("document.querySelector('button.live.live')", "the page is live")
	page.settle()
	time.sleep(3)
	seen = idle_cost(hapax)
	asks = asked_at_a_change(page, hapax), asked_at_a_change(page, hapax)
	page.close()
	print(f"# {verdicts.name}: the server costs {alone:.1f} ms of processor a second without a page, {seen:.1f} with one", flush=True)
	verdicts.say("an idle page costs, of a second of the processor", max(seen - alone, 0), IDLE_MS_A_SECOND, "ms")
	return asks


def open_pages(verdicts, hapax, asks):
	alone, took = cost_of_pushes(hapax)
	listening = Watchers(hapax, 200)
	together, took_then = cost_of_pushes(hapax)
	listening.close()
	watching = Watchers(hapax, 200, *asks)
	rounds, began = watching.rounds, time.monotonic()
	with_asks, took_asked = cost_of_pushes(hapax)
	rounds = (watching.rounds - rounds) / (time.monotonic() - began)
	watching.close()
	print(f"# {verdicts.name}: at 10000 a second 1000 jobs pushed cost {alone:.1f} ms of processor alone, {together:.1f} with 200 pages that hear, {with_asks:.1f} with 200 that ask anew ({rounds:.0f} a second, {len(asks[1])} requests each, {len(asks[0])} at times);"
		f" 500 take {took:.1f}, {took_then:.1f}, {took_asked:.1f} ms", flush=True)
	verdicts.say("200 open pages cost beside 10000 changes, of a second of the processor", max(together - alone, 0) * 10, OPEN_MS_A_SECOND, "ms")
	verdicts.say("200 open pages: how long 500 jobs take, of how long they take alone", took_then / took, 1.25, "times")


def measure(dir, name, url):
	with scenes.World() as world:
		with scenes.serve(dir, world, url) as hapax:
			scenes.Scene(hapax)
			world.go.set()
			until(lambda: not hapax.json("GET", "/api/v1/batches?status=RUNNING")["items"], "nothing is under way")
		began = time.monotonic()
		multiply(Sql(dir, url), "shipment")
		print(f"# {name}: {RUNS} runs made in {time.monotonic() - began:.0f} s", flush=True)
		with scenes.serve(dir, world, url) as hapax, browser.Browser() as chromium:
			here, verdicts = f"http://127.0.0.1:{hapax.port}/", Verdicts(name)
			first_pages(verdicts, chromium, here, hapax.json("GET", "/api/v1/workflow-runs?definitionId=shipment&limit=1")["items"][0]["id"])
			changes(verdicts, chromium, hapax, here)
			open_pages(verdicts, hapax, idle(verdicts, chromium, hapax, here))
			assert not verdicts.missed, verdicts.missed


def test_a_million_runs_on_sqlite(dir):
	measure(dir, "SQLite", "sqlite:h.db")


if PG:
	def test_a_million_runs_on_postgres(dir):
		measure(dir, "PostgreSQL", PG)


server.run(globals())
END2
