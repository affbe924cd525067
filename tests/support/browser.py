"""
A real Chromium without a window, by its DevTools protocol over a pipe (no port, no library), for tests of pages.

	with browser.Browser(dir) as chromium:
		page = chromium.page(url)
		page.until("document.querySelector('h1')?.textContent == 'Inbox'")
		page.click("button", "retry")
		page.picture("inbox.png")

What a page complains about is kept: page.complaints has every exception, every line of the console that is an error, and every
violation of a Content-Security-Policy.
"""
import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--headless=new", "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--disable-gpu",
	"--disable-extensions", "--disable-background-networking", "--disable-sync", "--disable-component-update", "--disable-breakpad",
	"--disable-crash-reporter", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-color-profile=srgb", "--lang=en-GB",
	"--disable-features=Translate,MediaRouter,OptimizationHints", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost")
SECONDS = 30
WATCH = """addEventListener('securitypolicyviolation', e => (window.violations ||= []).push(e.violatedDirective + ' ' + e.blockedURI));"""


def program():
	return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


class Browser:
	def __init__(self, *options):
		self.home = tempfile.mkdtemp()
		to_read, self.to = os.pipe()
		self.source, to_write = os.pipe()
		def place():  # where it looks for them: 3 and 4
			read, write = os.dup(to_read), os.dup(to_write)
			read, write = os.dup2(read, 203), os.dup2(write, 204)
			os.dup2(read, 3), os.dup2(write, 4)

		# Its own group, and ended as one: it starts helpers. As root it has no sandbox; all that it loads is ours.
		self.process = subprocess.Popen([program(), *OPTIONS, *options, "--no-sandbox", f"--user-data-dir={self.home}", "about:blank"],
			stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=place, start_new_session=True,
			env={**os.environ, "TZ": "UTC", "HOME": self.home, "LANG": "C.UTF-8"})
		os.close(to_read)
		os.close(to_write)
		self.n, self.answers, self.pages, self.changed, self.ended = 0, {}, {}, threading.Condition(), False
		threading.Thread(target=self.listen, daemon=True).start()

	def __enter__(self):
		return self

	def __exit__(self, *_):
		try:
			os.killpg(self.process.pid, signal.SIGKILL)
		except ProcessLookupError:
			pass
		self.process.wait()
		os.close(self.to)
		shutil.rmtree(self.home, ignore_errors=True)

	def listen(self):
		rest = b""
		while piece := os.read(self.source, 1 << 20):
			*texts, rest = (rest + piece).split(b"\0")
			for text in texts:
				self.heard(json.loads(text))
		with self.changed:
			self.ended = True
			self.changed.notify_all()

	def heard(self, message):
		page = self.pages.get(message.get("sessionId"))
		with self.changed:
			if "id" in message:
				self.answers[message["id"]] = message
			elif page:
				page.heard(message["method"], message["params"])
			self.changed.notify_all()

	def ask(self, method, session=None, **parameters):
		with self.changed:
			self.n += 1
			n = self.n
		text = json.dumps({"id": n, "method": method, "params": parameters, **({"sessionId": session} if session else {})})
		os.write(self.to, text.encode() + b"\0")
		with self.changed:
			assert self.changed.wait_for(lambda: n in self.answers or self.ended, SECONDS), f"the browser does not answer {method}"
			assert n in self.answers, "the browser has ended"
			answer = self.answers.pop(n)
		assert "error" not in answer, f"{method}: {answer['error']}"
		return answer["result"]

	def page(self, url, width=1280, height=860, context=None):
		"""A new one, whose cookies are those of its context."""
		return Page(self, url, width, height, context)

	def context(self):
		return self.ask("Target.createBrowserContext")["browserContextId"]


class Page:
	def __init__(self, browser, url, width, height, context):
		self.browser, self.complaints, self.requests, self.open_requests = browser, [], [], set()
		where = {"browserContextId": context} if context else {}
		self.target = browser.ask("Target.createTarget", url="about:blank", **where)["targetId"]
		self.session = browser.ask("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
		browser.pages[self.session] = self
		for domain in ("Page", "Runtime", "Log", "Network"):
			self.ask(domain + ".enable")
		self.ask("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
		self.size(width, height)
		self.open(url)

	def ask(self, method, **parameters):
		return self.browser.ask(method, self.session, **parameters)

	def heard(self, method, parameters):
		if method == "Runtime.exceptionThrown":
			details = parameters["exceptionDetails"]
			self.complaints.append(details.get("exception", {}).get("description") or details["text"])
		elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error" and parameters["entry"]["source"] != "network":
			self.complaints.append(parameters["entry"]["text"])
		elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
			self.complaints.append(" ".join(str(a.get("value", a.get("description"))) for a in parameters["args"]))
		elif method == "Network.requestWillBeSent":
			self.requests.append(parameters["request"])
			if parameters.get("type") != "EventSource":
				self.open_requests.add(parameters["requestId"])
		elif method in ("Network.loadingFinished", "Network.loadingFailed"):
			self.open_requests.discard(parameters["requestId"])

	def open(self, url):
		self.ask("Page.navigate", url=url)
		self.until(f"location.href.startsWith({json.dumps(url)}) && document.readyState == 'complete'", f"{url} is loaded")

	def size(self, width, height):
		self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

	def dark(self, on):
		self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"},
			{"name": "prefers-reduced-motion", "value": "reduce"}])

	def js(self, text):
		answer = self.ask("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
		assert "exceptionDetails" not in answer, f"{text}: {answer['exceptionDetails'].get('exception', {}).get('description')}"
		return answer["result"].get("value")

	def until(self, text, what=None, seconds=SECONDS):
		"""What it answers once that is true of something. While a page loads there may be nobody to ask."""
		end = time.monotonic() + seconds
		while True:
			try:
				answer = self.js(text)
				if answer or answer == {}:  # that is a node
					return answer
			except AssertionError as error:
				if time.monotonic() > end:
					raise error
			assert time.monotonic() < end, f"waited {seconds} s for {what or text}; the page says: {self.text()[-3000:]}; it complains: {self.complaints}"
			time.sleep(0.02)

	def text(self):
		try:
			return self.js("document.body.innerText")
		except AssertionError:
			return ""

	def shows(self, words):
		self.until(f"document.body.innerText.includes({json.dumps(words)})", f"{words!r} on the page")

	def settle(self):
		"""Nothing is asked of the server any more, and what came has been drawn."""
		self.ask("Page.bringToFront")  # who is not seen draws nothing
		while True:
			with self.browser.changed:
				assert self.browser.changed.wait_for(lambda: not self.open_requests, SECONDS), "the page keeps asking"
				n = len(self.requests)
			self.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 10))))")
			if n == len(self.requests) and not self.open_requests:
				return

	def click(self, selector, words=None, within="body"):
		"""The first that fits and says exactly these words; a real press of the mouse in the middle of what is seen of it."""
		find = (f"[...document.querySelectorAll({json.dumps(within)})].flatMap(w => [...w.querySelectorAll({json.dumps(selector)})])"
			f".find(e => !e.disabled && ({json.dumps(words)} === null || e.textContent.trim() === {json.dumps(words)}))")
		self.until(find, f"{words or selector} in {within}")
		self.settle()
		# What is there is what is pressed: nothing lies over it, and it has not moved.
		box = self.until(f"(e => {{ if (!e) return null; e.scrollIntoView({{block: 'center'}}); const b = e.getBoundingClientRect(), x = b.x + b.width / 2, y = b.y + b.height / 2;"
			f" return e.contains(document.elementFromPoint(x, y)) ? {{x, y}} : null; }})({find})", f"{words or selector} in {within} can be pressed")
		for kind in ("mousePressed", "mouseReleased"):
			self.ask("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **box)

	def type(self, text):
		self.ask("Input.insertText", text=text)

	def press(self, key):
		self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": key} if len(key) == 1 else {}))
		self.ask("Input.dispatchKeyEvent", type="keyUp", key=key)

	def picture(self, path, whole=False):
		height = self.js("document.documentElement.scrollHeight") if whole else None
		clip = {"clip": {"x": 0, "y": 0, "width": self.js("innerWidth"), "height": height, "scale": 1}, "captureBeyondViewport": True} if whole else {}
		data = self.ask("Page.captureScreenshot", format=str(path).rsplit(".", 1)[1].replace("jpg", "jpeg"), **clip, **({"quality": 80} if str(path).endswith(".webp") else {}))["data"]
		with open(path, "wb") as file:
			file.write(base64.b64decode(data))

	def downloads(self, dir):
		"""What is saved goes there; of pages without a context of their own."""
		self.browser.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(dir))

	def violations(self):
		return self.js("window.violations || []")

	def close(self):
		self.browser.ask("Target.closeTarget", targetId=self.target)
