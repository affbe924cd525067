#!/usr/bin/env bash
# The page of `hapax explore --html` in a real Chromium: lanes, the arrow keys, the ledger, and names of files and rules that mean harm.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END2'
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import browser
from server import Server

ROOT = pathlib.Path.cwd()
HAPAX = os.path.join(os.environ.get("HAPAX_BUILD", ROOT / "build"), "hapax")
EVIL = "</script><img src=x onerror=window.hurt=1><script>window.hurt=1</script>\"'&"
if not os.access(HAPAX, os.X_OK):
	print("[  SKIPPED ] the program is not built in this flavour")
	sys.exit(0)
if not browser.program():
	print("not ok there_is_a_browser")
	print("no chromium: scripts/install-packages.sh test installs it")
	sys.exit(0)


def explore(folder, out, *arguments):
	done = subprocess.run([HAPAX, "explore", *arguments, "--html", out], cwd=folder, capture_output=True, text=True)
	return done.returncode


def judge(name, check):
	try:
		check()
		print("ok", name)
	except Exception as error:
		print("not ok", name)
		print(repr(error))


def calm(page):
	assert page.js("window.hurt === undefined"), "a stranger's text was executed"
	assert not page.violations(), page.violations()
	assert not page.complaints, page.complaints


def press(page, key):
	for kind in ("keyDown", "keyUp"):
		page.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key)


with tempfile.TemporaryDirectory() as folder, browser.Browser() as chromium:
	at = lambda page: page.js("document.getElementById('at').textContent")
	shown = lambda page, what: page.js(f"document.querySelectorAll('{what}:not(.after)').length")

	def a_story():
		assert explore(folder, "story.html", ROOT / "examples/explore/double-charge.json") == 1
		page = chromium.page(f"file://{folder}/story.html")
		page.shows("charge has happened twice for one decision")
		n = page.js("document.querySelectorAll('tr.event').length")
		assert n == 4 and at(page) == f"1 / {n}" and shown(page, "tr.event") == 1, (n, at(page))
		lanes = page.js("[...document.querySelectorAll('tr.event')].map(r => [...r.cells].findIndex((c, i) => i && c.textContent))")
		assert lanes == [2, 5, 2, 4], lanes
		for key, place in (("ArrowDown", 2), ("ArrowRight", 3), ("End", n), ("ArrowUp", n - 1), ("Home", 1)):
			press(page, key)
			assert at(page) == f"{place} / {n}" and shown(page, "tr.event") == place, (key, at(page))
		assert shown(page, "tr.effect") == 0
		press(page, "End")
		assert shown(page, "tr.effect") == 2, "the ledger has both charges"
		page.shows("Tried: on_unknown: hold")
		assert page.js("document.querySelectorAll('figure svg').length") == 1
		calm(page)

	def strangers():
		# A name of a file has no slash, so that what would close the script stands in a rule, which may say anything.
		evil_file = EVIL.replace("/", "") + ".json"
		text = (ROOT / "examples/explore/claim-without-probe.json").read_text()
		quoted = EVIL.replace("\\", "\\\\").replace('"', '\\\\\\"')
		rule = f'"rules": [ {{ "never": ".status == \\"paid\\" and \\"{quoted}\\" != .status" }} ],'
		(pathlib.Path(folder) / evil_file).write_text(text.replace('"kind": "entity",', '"kind": "entity", ' + rule))
		assert explore(folder, "evil.html", evil_file) == 1
		page = chromium.page(f"file://{folder}/evil.html")
		page.shows(evil_file)
		page.shows(EVIL[:20])
		assert page.js("document.querySelectorAll('script').length") == 1 and page.js("document.querySelectorAll('img').length") == 0
		press(page, "End")
		assert at(page).split(" / ")[0] != "1", "the page's own script runs"
		calm(page)

	def a_clean_one():
		assert explore(folder, "clean.html", ROOT / "examples/order/order.json", "--mishaps", "0") == 0
		page = chromium.page(f"file://{folder}/clean.html")
		page.shows("no rule was broken")
		assert page.js("document.querySelectorAll('tr.never').length") > 0, "approve is not reached with the input {}"
		assert page.js("[...document.querySelectorAll('svg text')].some(t => t.textContent == 'approve' && t.getAttribute('fill') == '#c00')"), "the graph says so"
		calm(page)

	def nowhere():
		assert explore(folder, "no/where.html", ROOT / "examples/explore/double-charge.mended.json") == 70

	def the_dashboard():
		# One that breaks, in a world of its own, and one whose world keeps its word: what the definition says of it counts.
		text = json.loads((ROOT / "examples/explore/double-charge.json").read_text())
		with Server(folder, "serve", "--db", "sqlite::memory:") as server:
			put = lambda d: server.call("PUT", f"/api/v1/definitions/{text['workflow']}", d)
			assert put(text)[0] == 200
			page = chromium.page(f"http://127.0.0.1:{server.port}/#/workflows/{text['workflow']}")
			page.click("button", "explore")
			page.shows("charge has happened twice for one decision")
			page.shows("on_unknown: hold, step charge")
			assert page.js("document.querySelectorAll('table.story tbody tr').length") == 4
			assert put({**text, "world": {"services": {"charge": {"dedupes": True}}}})[0] == 200
			page.shows("version 2")
			page.click("button", "explore")
			page.shows("Nothing was found.")
			assert not page.js("/never reached/.test(document.body.innerText)")
			order = json.loads((ROOT / "examples/order/order.json").read_text())
			assert server.call("PUT", "/api/v1/definitions/order", order)[0] == 200
			page.open(f"http://127.0.0.1:{server.port}/#/workflows/order")
			page.click("button", "explore")
			page.shows("steps and calls were never reached, so this says nothing of them")
			assert page.js("document.querySelector('.explored .note').className") == "note warn"
			calm(page)

	judge("a_story_by_the_arrow_keys", a_story)
	judge("explored_from_the_dashboard", the_dashboard)
	judge("names_that_mean_harm", strangers)
	judge("a_page_without_a_story", a_clean_one)
	judge("a_page_that_cannot_be_written", nowhere)
END2
