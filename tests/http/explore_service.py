#!/usr/bin/env python3
"""A service for tests/http/test_explore_replay.sh: does what it is asked for, or not, and answers, or not, as it is told to.

    explore_service.py PORT    prints "ready PORT"

    POST /ACTION               a call of the engine's; its Idempotency-Key is noted in the ledger
    PUT /mind/ACTION/WORD…     what the next calls of it do, one word each; then "done" for ever
                               done: does it and answers · lost: does it, and the connection breaks
                               late: does nothing yet, and the connection breaks · wait: does it, and answers when told to go
    PUT /land                  what was late happens
    PUT /go                    those that wait are answered
    GET /ledger                {"ACTION": [KEY, …]} of what has happened
    GET /late                  how much is still to happen
"""
import json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()
ledger, minds, late = {}, {}, []
go = threading.Event()


class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with lock:
            self.answer(len(late) if self.path == "/late" else ledger)

    def do_PUT(self):
        words = self.path.strip("/").split("/")
        with lock:
            if words[0] == "mind":
                minds[words[1]] = words[2:]
            elif words[0] == "land":
                for action, key in late:
                    ledger.setdefault(action, []).append(key)
                late.clear()
        if words[0] == "go":
            go.set()
        self.answer({})

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        action, key = self.path.strip("/"), self.headers.get("Idempotency-Key", "")
        with lock:
            mind = minds.get(action) or []
            word = mind.pop(0) if mind else "done"
            if action in ("find", "payouts"):
                word = "asked"
            elif word == "late":
                late.append((action, key))
            else:
                ledger.setdefault(action, []).append(key)
        if word in ("lost", "late"):
            self.close_connection = True
            return
        if word == "wait":
            go.wait(60)
        self.answer({"outcome": "not_done"} if word == "asked" else {})


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service)
print("ready", server.server_address[1], flush=True)
server.serve_forever()
