#!/usr/bin/env python3
"""payments.py [PORT]: a service that pays, takes a second for it, and knows nothing of keys. It prints where it is, on any
free port if not told, and what it pays."""
import http.server, itertools, json, sys, time


class Payments(http.server.BaseHTTPRequestHandler):
    numbers = itertools.count(1)

    def do_POST(self):
        payment = json.loads(self.rfile.read(int(self.headers["Content-Length"]))) | {"payment": next(self.numbers)}
        print(f"{self.path}: paid {payment['amount']}, payment {payment['payment']}", flush=True)
        time.sleep(1)
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(payment).encode() + b"\n")

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1]) if sys.argv[1:] else 0), Payments)
server.handle_error = lambda *args: print("paid, and the caller is gone", flush=True)
print(f"ready http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
