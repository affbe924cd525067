"""
For test_dashboard*.sh: what people do on a page, and what is asked of it afterwards.
"""
import json
import os
import subprocess
import sys

import browser

PG = os.environ.get("HAPAX_TEST_PG")


def need_browser():
	if not browser.program():
		print("not ok there_is_a_browser")
		print("no chromium: scripts/install-packages.sh test installs it")
		sys.exit(0)


class Store:
	"""A database of its own: the tables of the others are theirs."""

	def __init__(self, kind):
		self.kind, self.url = kind, "sqlite:h.db"
		if kind == "postgres":
			self.name = f"dashboard_{os.getpid()}"
			self.sql(f"CREATE DATABASE {self.name}")
			self.url = PG.rsplit("/", 1)[0] + "/" + self.name

	def sql(self, text):
		subprocess.run(["psql", "-qX", PG, "-c", text], check=True)

	def __enter__(self):
		return self

	def __exit__(self, *_):
		if self.kind == "postgres":
			self.sql(f"DROP DATABASE {self.name} WITH (FORCE)")


def calm(page):
	"""Nothing was executed, nothing was complained about."""
	assert page.js("window.hurt === undefined && ({}).hurt === undefined && [].hurt === undefined"), "a stranger's text was executed"
	assert not page.violations(), page.violations()
	assert not page.complaints, page.complaints


def at(page, way):
	page.js(f"location.hash = {json.dumps('#/' + way)}")


def be_still(page):
	"""What appears by itself would move what is to be pressed."""
	page.until("document.querySelector('button.live.live')", "the page is live")
	page.click("button.live")
	page.shows("paused")


def press(page, label, confirm, fields=None, within="main"):
	"""A button, what it asks for, and its confirmation; what is said then."""
	page.click(f".actions button", label, within)
	page.until("document.querySelector('form.panel')", "the panel")
	for name, text in (fields or {}).items():
		page.js(f"(e => {{ e.focus(); e.select(); }})(document.querySelector('form.panel #f-{name}'))")
		page.type(text)
	command = page.js("document.querySelector('form.panel .command code').textContent")
	assert command.startswith("hapax "), command
	page.click("button:not([type])", confirm, "form.panel")
	return page.until("document.querySelector('form.panel .note')?.textContent", f"what became of {label}")


def done(page, *args, **more):
	said = press(page, *args, **more)
	assert said.startswith("Done."), said
	page.click("form.panel button[type=button]")
	return said


def inbox_item(page, id):
	"""A selector that finds the card of this subject, whichever element it is by then: another order or filter draws all of them anew."""
	at(page, "")
	card = f'article.item[data-id="{id}"]'
	page.until(f"location.hash == '#/' && document.querySelector({json.dumps(card)})", f"{id} in the inbox")
	return card
