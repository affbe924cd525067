#!/usr/bin/env python3
"""actions.py PORT: the outside world of the example. It says so once it listens, and then what it does.

POST /close takes a second, POST /mail sends a mail, by printing it. A call with an Idempotency-Key that
was seen before gets the first answer again and has no second effect.
"""
import collections, http.server, json, sys, threading, time

answers, calls, effects, lock = {}, collections.Counter(), collections.Counter(), threading.Lock()


class Action(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        what, key = f"{self.path.strip('/')} {call['id']}", self.headers["Idempotency-Key"]
        time.sleep(1 if self.path == "/close" else 0)
        with lock:
            calls[what] += 1
            if key not in answers:
                effects[what] += 1
                answers[key] = json.dumps({"receipt": f"{what} {effects[what]}"}).encode()
            print(f"{what}: calls {calls[what]}, effects {effects[what]}, key {key}", flush=True)
        try:
            self.send_response(200)
            self.send_header("Content-Length", str(len(answers[key])))
            self.end_headers()
            self.wfile.write(answers[key])
        except ConnectionError:
            pass  # the caller is dead; the effect is not

    def log_message(self, *args):
        pass


try:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Action)
except OSError as problem:
    sys.exit(f"actions.py: cannot listen on 127.0.0.1:{sys.argv[1]}: {problem.strerror}")
print("ready", flush=True)
server.serve_forever()
