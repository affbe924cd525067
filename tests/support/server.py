"""
For scripts that test a running server from outside, over real sockets: `hapax serve` or `hapax gate` in a folder of its own, a
service that plays the actions and keeps what it was called with, and judged tests.

	import server
	def test_something(dir):
		with server.Server(dir, "serve", "--workflows", ...) as hapax:
			status, head, body = hapax.call("POST", "/api/v1/…", {"id": "a"})
			assert status == 201, body
	server.run(globals())

A test is a function test_NAME(dir); it prints `ok NAME`, or `not ok NAME` and why. Nothing outlives the script.
"""
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback

HAPAX = os.path.abspath(os.path.join(os.environ.get("HAPAX_BUILD") or "build", "hapax"))
ROOT = pathlib.Path.cwd()


def until(condition, what, seconds=60):
	"""What the condition answers once that is true of something."""
	end = time.monotonic() + seconds
	while not (answer := condition()):
		assert time.monotonic() < end, f"waited {seconds} s for {what}"
		time.sleep(0.01)
	return answer


class Server:
	"""
	Ready when it is made; standard error is the file `log`. `listen`: where one listened that was killed, for those who go on asking it;
	an address of its own, or somebody's outgoing connection may have the port meanwhile.
	"""

	host = "127.0.0.1"  # of one that somebody else has started, too

	def __init__(self, dir, verb, *args, env=None, listen="127.0.0.1:0"):
		self.dir, self.log = pathlib.Path(dir), pathlib.Path(dir) / f"{verb}.log"
		clean = {k: v for k, v in os.environ.items() if not k.startswith("HAPAX_")}
		with open(self.log, "ab") as log:
			self.process = subprocess.Popen([HAPAX, verb, "--listen", listen, *args], cwd=dir, stderr=log,
				stdout=subprocess.PIPE, env={**clean, **(env or {})})
		line = self.process.stdout.readline().decode()
		assert line.startswith(f"ready http://{listen.rpartition(':')[0]}:"), f"it did not become ready: {self.text()}"
		self.url = line.split()[1]
		self.host, port = self.url[len("http://"):].split(":")
		self.port = int(port)

	def __enter__(self):
		return self

	def __exit__(self, *_):
		if self.process.poll() is None:
			self.process.kill()
		self.process.wait()
		self.process.stdout.close()

	def stop(self):
		self.process.send_signal(signal.SIGTERM)
		assert self.process.wait(60) == 0

	def hup(self):
		self.process.send_signal(signal.SIGHUP)

	def text(self):
		return self.log.read_bytes().decode("utf-8", "replace")

	def await_log(self, words):
		until(lambda: words in self.text(), f"{words!r} in the log")

	def open(self):
		s = socket.create_connection((self.host, self.port), timeout=60)
		s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
		return s

	def raw(self, data):
		"""Sends bytes as they are; the status of the answer (0: none), its head and body. The connection ends with it."""
		with self.open() as s:
			try:
				s.sendall(data)
			except OSError:
				pass  # refused before all of it was sent; the answer is there
			return read_answer(s)

	def call(self, method, path, body=None, headers=()):
		data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
		fields = b"".join(
			(name if isinstance(name, bytes) else name.encode()) + b": " +
			(value if isinstance(value, bytes) else value.encode()) + b"\r\n" for name, value in headers)
		return self.raw(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
			f"Content-Length: {len(data)}\r\n".encode() + fields + b"\r\n" + data)

	def json(self, method, path, body=None, headers=(), status=None):
		got, _, text = self.call(method, path, body, headers)
		assert status is None or got == status, f"{method} {path}: {got}, not {status}: {text[:500]!r}"
		return json.loads(text)


def read_answer(s):
	data = b""
	try:
		while piece := s.recv(1 << 16):
			data += piece
	except OSError:
		pass
	head, _, body = data.partition(b"\r\n\r\n")
	status = int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/1.1 ") else 0
	return status, head.decode("latin-1"), body


class Service:
	"""
	Answers every request with `answer`, a status and a body (and `fields`), or that of `answers` for its path; None: it hangs up. Calls are
	(path, headers in lower case, body).
	"""

	def __init__(self):
		self.calls, self.answer, self.answers, self.fields, self.hold = [], (200, b"{}"), {}, {}, threading.Event()
		self.hold.set()
		service = self

		class Handler(http.server.BaseHTTPRequestHandler):
			protocol_version = "HTTP/1.1"

			def do_POST(self):
				body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
				service.calls.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
				service.hold.wait(30)
				answer = service.answers.get(self.path, service.answer)
				if answer is None:
					self.close_connection = True
					return
				status, text = answer
				self.send_response(status)
				self.send_header("Content-Type", "application/json")
				self.send_header("Content-Length", str(len(text)))
				for field in service.fields.items():
					self.send_header(*field)
				self.end_headers()
				self.wfile.write(text)

			do_GET = do_POST

			def log_message(self, *_):
				pass

		self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
		self.httpd.daemon_threads = True
		self.httpd.handle_error = lambda *_: None  # clients that are killed hang up
		self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
		threading.Thread(target=self.httpd.serve_forever, daemon=True).start()

	def __enter__(self):
		return self

	def __exit__(self, *_):
		self.hold.set()
		self.httpd.shutdown()
		self.httpd.server_close()

	def await_calls(self, path, n=1):
		return until(lambda: (got := [c for c in self.calls if c[0] == path]) and len(got) >= n and got,
			f"{n} calls of {path}")


def write(path, value):
	path = pathlib.Path(path)
	path.parent.mkdir(exist_ok=True)
	path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))


def run_one(name, test):
	dir = tempfile.mkdtemp()
	try:
		test(pathlib.Path(dir))
		print(f"ok {name[5:]}", flush=True)
	except Exception:
		print(f"not ok {name[5:]}")
		traceback.print_exc(file=sys.stdout)
		for log in pathlib.Path(dir).glob("*.log"):
			print(log.name, log.read_text("utf-8", "replace")[-2000:])
		sys.stdout.flush()
	finally:
		shutil.rmtree(dir, ignore_errors=True)


def run_apart(tests, at_once):
	"""Each in a process of its own, which tells what it has to say at its end."""
	tests, under_way = list(tests), {}
	while tests or under_way:
		if tests and len(under_way) < at_once:
			told = tempfile.TemporaryFile("w+")
			sys.stdout.flush()
			if not (pid := os.fork()):
				os.dup2(told.fileno(), 1)
				run_one(*tests[0])
				sys.stdout.flush()
				os._exit(0)
			under_way[pid] = (tests.pop(0)[0], told)
			continue
		pid, status = os.wait()
		name, told = under_way.pop(pid)
		told.seek(0)
		print(told.read(), end="" if status == 0 else f"not ok {name[5:]}: it has died\n", flush=True)


def run(names, at_once=1):
	"""At once: of tests that mostly wait and have everything to themselves."""
	if not os.access(HAPAX, os.X_OK):
		print("[  SKIPPED ] the program is not built in this flavour")
		return
	tests = [(name, test) for name, test in names.items()
		if name.startswith("test_") and (not sys.argv[1:] or name[5:] in sys.argv[1:])]  # by name: those alone
	if at_once > 1:
		run_apart(tests, at_once)
		return
	for name, test in tests:
		run_one(name, test)
