#!/usr/bin/env bash
# --server https://…: through something that ends TLS in front of a real server. Certificates are checked, and trusted by the
# system or by HAPAX_CA_FILE.
set -u
. tests/support/cli.sh

serve
port=${HAPAX_SERVER##*:}
openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out ca.pem -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost \
	>/dev/null 2>&1
cat >tls.py <<'END'
# One connection at a time: ends TLS, and passes bytes on to the port that is named first.
import socket, ssl, sys, threading
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("ca.pem", "key.pem")
door = socket.create_server(("127.0.0.1", 0))
with open("tls.port.new", "w") as file:
	print(door.getsockname()[1], file=file)
__import__("os").rename("tls.port.new", "tls.port")


def pass_on(source, target):
	try:
		while data := source.recv(65536):
			target.sendall(data)
	except OSError:
		pass


while True:
	plain, _ = door.accept()
	try:
		client = context.wrap_socket(plain, server_side=True)
	except (OSError, ssl.SSLError):
		continue
	server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
	threading.Thread(target=pass_on, args=(client, server), daemon=True).start()
	pass_on(server, client)
	try:
		client.unwrap()
	except (OSError, ssl.SSLError):
		pass
	client.close(), server.close()
END
python3 tls.py "$port" 2>/dev/null &
ender=$!
trap 'kill "$ender" 2>/dev/null; finish' EXIT
await test -f tls.port
unset HAPAX_SERVER
there=https://localhost:$(cat tls.port)

HAPAX_CA_FILE=ca.pem exits 0 job push q --server "$there" && says_like '^job_' && HAPAX_CA_FILE=ca.pem exits 0 job list --server "$there" && says_like '^job_.* q '
result a_verb_over_tls
dd if=/dev/zero bs=1000 count=500 2>/dev/null | tr '\0' 'x' | sed 's/^/"/; s/$/"/' >large.json
HAPAX_CA_FILE=ca.pem exits 0 job push large --payload @large.json --server "$there" && id=$(cat out) && HAPAX_CA_FILE=ca.pem exits 0 job show "${id%% *}" --json --server "$there" &&
	[ "$(wc -c <out)" -gt 500000 ]
result half_a_megabyte_each_way
exits 69 job list --server "$there" && complains "TLS" && silent out
result a_certificate_that_nobody_trusts
HAPAX_CA_FILE=ca.pem exits 69 job list --server "https://127.0.0.1:$(cat tls.port)" && complains "TLS"
result a_certificate_for_another_name
HAPAX_CA_FILE=ca.pem exits 69 job list --server "https://localhost:$port" && HAPAX_CA_FILE=/none exits 78 job list --server "$there" && complains "HAPAX_CA_FILE"
result no_tls_there_and_no_such_file
exit 0
