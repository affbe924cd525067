#!/usr/bin/env python3
"""A service that pays, takes a second for it, and knows nothing of keys. It prints where it is, and what it pays."""
import http.server, itertools, json, time


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


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Payments)
server.handle_error = lambda *args: print("paid, and the caller is gone", flush=True)
print(f"ready http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
