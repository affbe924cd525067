#!/usr/bin/env bash
# The ways to a Redis: TLS (with whom it is spoken to is checked before a password is sent), a unix socket, users, and Sentinels, with a
# failover. Real servers, as stores of `hapax gate` and of the entry locks of `hapax serve`.
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/support exec python3 - <<'END'
import contextlib, os, pathlib, random, re, shutil, signal, socket, subprocess
import server
from server import Server, Service, until, write

PASSWORD = "sesame@home"


def free_port():
	"""Of those that the system does not give to whoever asks for any, so that nobody has it before our server does."""
	while True:
		with socket.socket() as s, contextlib.suppress(OSError):
			s.bind(("127.0.0.1", random.randrange(12000, 32000)))
			return s.getsockname()[1]


def cli(port, *words, args=()):
	return subprocess.run(["redis-cli", "-p", str(port), *args, *words], capture_output=True, text=True, timeout=30,
		env={**os.environ, "REDISCLI_AUTH": PASSWORD}).stdout.strip()


@contextlib.contextmanager
def redis(dir, name, port, *lines, sentinel=False, args=()):
	"""A server until the end of the block; its folder is dir/name."""
	home = pathlib.Path(dir) / name
	home.mkdir()
	write(home / "conf", "\n".join(["bind 127.0.0.1", f"port {port}" if not args else "port 0", f'dir "{home}"', *lines]) + "\n")
	with open(home / "out", "wb") as out:
		process = subprocess.Popen(["redis-server", str(home / "conf"), *(["--sentinel"] if sentinel else [])], stdout=out, stderr=out)
	try:
		until(lambda: cli(port, "ping", args=args).startswith(("PONG", "NOAUTH")) or process.poll() is not None, f"{name} to answer")
		assert process.poll() is None, (home / "out").read_text()
		yield process
	finally:
		if process.poll() is None:
			process.kill()
		process.wait()


def openssl(*words):
	subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True, timeout=60)


def certify(dir, host):
	"""A certificate for this host, and who vouches for it."""
	dir.mkdir()
	openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", 2, "-subj", "/CN=ours", "-keyout", dir / "ca.key", "-out", dir / "ca.pem")
	openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=redis", "-keyout", dir / "key.pem", "-out", dir / "request.pem")
	write(dir / "names", f"subjectAltName={host}\n")
	openssl("x509", "-req", "-in", dir / "request.pem", "-CA", dir / "ca.pem", "-CAkey", dir / "ca.key", "-days", 2, "-extfile", dir / "names",
		"-out", dir / "cert.pem")
	return dir


def gate_with(dir, service, url):
	return Server(dir, "gate", "--upstream", service.url, "--store", url)


def post(gate, key):
	status, head, _ = gate.call("POST", "/pay", {}, [("Idempotency-Key", key)])
	m = re.search(r"Idempotency-Status: (\w+)", head)
	return status, m and m[1]


def refused(dir, *words):
	"""The exit code of a start that is refused, and what it says."""
	done = subprocess.run([server.HAPAX, *words], cwd=dir, capture_output=True, text=True, timeout=60)
	assert PASSWORD not in done.stderr and "sesame" not in done.stderr, done.stderr
	return done.returncode, done.stderr


def test_tls(dir):
	good, other, wrong_name = certify(dir / "good", "IP:127.0.0.1"), certify(dir / "other", "IP:127.0.0.1"), certify(dir / "wrong", "DNS:redis.example")
	port, misnamed = free_port(), free_port()
	def lines(at, files, *more):
		return (f"tls-port {at}", f"tls-cert-file {files}/cert.pem", f"tls-key-file {files}/key.pem", f"tls-ca-cert-file {files}/ca.pem",
			f"requirepass {PASSWORD}", "appendonly yes", "appendfsync always", *more)
	args = ("--tls", "--cacert", str(good / "ca.pem"), "--cert", str(good / "cert.pem"), "--key", str(good / "key.pem"))
	at = f"rediss://:sesame%40home@127.0.0.1:{port}/3"
	ours = f"&cert={good}/cert.pem&key={good}/key.pem"
	with Service() as service, redis(dir, "redis", port, *lines(port, good), args=args), \
			redis(dir, "misnamed", misnamed, *lines(misnamed, wrong_name, "tls-auth-clients no"), args=("--tls", "--insecure")):
		with gate_with(dir, service, f"{at}?ca={good}/ca.pem{ours}") as gate:
			assert post(gate, "k") == (200, "created") and post(gate, "k") == (200, "replayed")
			assert "appendfsync" not in gate.text()
			assert cli(port, "-n", "3", "dbsize", args=args) == "1"
			large = b"[" + b"1," * 300000 + b"1]"
			status, head, body = gate.call("POST", "/large", large, [("Idempotency-Key", "l")])
			assert status == 200, head
			gate.stop()
		# Whoever is not known is told nothing, least of all a password.
		for url, words in ((f"{at}?ca={other}/ca.pem{ours}", "certificate is not trusted"), (f"{at}?{ours[1:]}", "certificate is not trusted"),
				(f"rediss://:sesame%40home@127.0.0.1:{misnamed}/0?ca={wrong_name}/ca.pem", "certificate is not trusted"),
				(f"{at}?ca={dir}/none.pem", "cannot be read"), (f"rediss://:sesame%40home@127.0.0.1:{misnamed}/0?ca={wrong_name}/key.pem", "cannot be read")):
			code, said = refused(dir, "gate", "--upstream", service.url, "--store", url)
			assert code == 78 and words in said, (url, code, said)
		assert "cmdstat_select" not in cli(misnamed, "info", "commandstats", args=("--tls", "--insecure"))
		# In the clear to a server that wants TLS, and the other way round.
		code, said = refused(dir, "gate", "--upstream", service.url, "--store", at.replace("rediss", "redis"))
		assert code == 69, (code, said)
		# The entry locks go the same way.
		write(dir / "config.json", {"modules": {"m": {"janitor": {}}}, "entry_lock_store": f"{at}?ca={good}/ca.pem{ours}"})
		write(dir / "flows" / "w.json", {"workflow": "w", "kind": "entity", "meta": {"module": "m"}, "status_types": ["a", "b"], "initial_status": "a",
			"steps": [{"step_id": 1, "step_key": "go", "status": "a", "successful_state": "b", "entry_lock": "5s"}]})
		with Server(dir, "serve", "--workflows", "flows", "--config", "config.json") as hapax:
			hapax.json("POST", "/api/v1/entities/w", {"id": "x"}, status=201)
			hapax.json("POST", "/api/v1/entities/w/x/steps/go", {}, status=200)
			assert "\nhapax_entry_lock_unavailable_total 0\n" in hapax.call("GET", "/metrics")[2].decode()
		assert "cmdstat_set:" in cli(port, "info", "commandstats", args=args)
		write(dir / "config.json", {"modules": {"m": {"janitor": {}}}, "entry_lock_store": f"{at}?ca={other}/ca.pem{ours}"})
		code, said = refused(dir, "serve", "--workflows", "flows", "--config", "config.json", "--listen", "127.0.0.1:0")
		assert code == 78 and "certificate is not trusted" in said, (code, said)


def test_unix_socket_and_user(dir):
	port, path = free_port(), dir / "s.sock"
	with Service() as service, redis(dir, "redis", port, f"unixsocket {path}", "unixsocketperm 700", f"user default on >{PASSWORD} ~* &* +@all",
			"user gate on >other ~* &* +@all -@admin"):
		url = f"redis+unix://:sesame%40home@{path}?db=2"
		with gate_with(dir, service, url) as gate:
			assert post(gate, "k") == (200, "created") and post(gate, "k") == (200, "replayed")
			assert cli(port, "-n", "2", "dbsize") == "1"
		with gate_with(dir, service, f"redis+unix://gate:other@{path}?db=2") as gate:
			assert post(gate, "k") == (200, "replayed")
		assert refused(dir, "gate", "--upstream", service.url, "--store", f"redis+unix://gate:sesame@{path}")[0] == 78
		assert refused(dir, "gate", "--upstream", service.url, "--store", f"redis+unix://:sesame@{dir}/none")[0] == 69


def test_sentinel_and_a_failover(dir):
	ports = [free_port() for _ in range(2)]
	sentinel, nobody = free_port(), free_port()
	both = (f"requirepass {PASSWORD}", f"masterauth {PASSWORD}", "appendonly yes", "appendfsync always", "repl-diskless-sync-delay 0")
	watch = (f"sentinel monitor main 127.0.0.1 {ports[0]} 1", f"sentinel auth-pass main {PASSWORD}", "sentinel down-after-milliseconds main 500",
		"sentinel failover-timeout main 5000", f"requirepass {PASSWORD}")
	url = f"redis+sentinel://:sesame%40home@127.0.0.1:{nobody},127.0.0.1:{sentinel}/main/1?sentinel_password=sesame%40home"
	with contextlib.ExitStack() as stack:
		service = stack.enter_context(Service())
		first = stack.enter_context(redis(dir, "first", ports[0], *both))
		stack.enter_context(redis(dir, "second", ports[1], *both, f"replicaof 127.0.0.1 {ports[0]}"))
		stack.enter_context(redis(dir, "sentinel", sentinel, *watch, sentinel=True))
		until(lambda: "num-slaves\n1\n" in cli(sentinel, "sentinel", "master", "main") + "\n", "the Sentinel to know the replica")
		until(lambda: "master_link_status:up" in cli(ports[1], "info", "replication"), "the replica to follow")
		assert refused(dir, "gate", "--upstream", service.url, "--store", url.replace("/main/", "/other/"))[0] == 69
		assert refused(dir, "gate", "--upstream", service.url, "--store", url.replace("?sentinel_password=sesame%40home", ""))[0] == 78
		gate = stack.enter_context(gate_with(dir, service, url))
		assert post(gate, "k") == (200, "created")
		assert cli(ports[0], "-n", "1", "dbsize") == "1"
		until(lambda: cli(ports[1], "-n", "1", "dbsize") == "1", "the replica to have the record")
		first.send_signal(signal.SIGKILL)
		first.wait()
		until(lambda: post(gate, "after") in ((200, "created"), (200, "replayed")), "the gate to find the new primary")
		assert post(gate, "after") == (200, "replayed") and post(gate, "k") == (200, "replayed")
		assert int(cli(ports[1], "-n", "1", "dbsize")) == 2 and "role:master" in cli(ports[1], "info", "replication")
		assert len([c for c in service.calls if c[1]["idempotency-key"] == "k"]) == 1
		gate.stop()


server.run(globals())
END
