#!/usr/bin/env python3
"""store.py PORT: an artifact store in a few lines. What it has made is in memory, what it does is printed.

POST /render   makes the artifact of a key: slow, once for each key, and never for one that is void
POST /void     makes a key useless
POST /delete   deletes the artifact of an item
POST /tell     somebody is told how a batch has ended
GET /PREFIX    lists the artifacts whose keys begin so
"""
import collections, http.server, json, sys, threading, time

artifacts, answers, voids, locks = {}, {}, set(), collections.defaultdict(threading.Lock)


def say(*words):
    sys.stdout.write(" ".join(words) + "\n")  # in one piece, whoever else is at it: print() writes the end of a line apart
    sys.stdout.flush()


def render(key, call):
    with locks[key]:  # who asks again meanwhile waits, and gets the same answer
        if key in voids:
            say("refused", key)
            return 422, {"error": "this key is void"}
        if key not in answers:
            say("rendering", key)
            time.sleep(0.2)
            artifacts[key] = f"frame {call['input']['frame']}"
            answers[key] = {"artifact": key}
        return 200, answers[key]


def void(_, call):
    with locks[call["key"]]:  # what is being made under it is there when this is answered, and can be deleted
        say("void", call["key"])
        voids.add(call["key"])
        return 200, {}


def delete(_, call):
    key = f"{call['id']}/{call['item']['n']}"  # not by the item's output: one whose outcome is unknown has none
    there = artifacts.pop(key, None)
    say("deleted" if there else "nothing to delete of", key)
    return 200 if there else 404, {}


def tell(_, call):
    say(call["id"], "is", call["to"], json.dumps(call["output"]))
    return 200, {}


class Store(http.server.BaseHTTPRequestHandler):
    calls = {"/render": render, "/void": void, "/delete": delete, "/tell": tell}

    def do_POST(self):
        call = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, answer = self.calls[self.path](self.headers["Idempotency-Key"], call)
        self.reply(status, json.dumps(answer))

    def do_GET(self):
        self.reply(200, "".join(f"{k}: {what}\n" for k, what in artifacts.copy().items() if k.startswith(self.path[1:])))

    def reply(self, status, text):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *args):
        pass


try:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Store)
except OSError as problem:
    sys.exit(f"store.py: cannot listen on 127.0.0.1:{sys.argv[1]}: {problem.strerror}")
server.handle_error = lambda *args: say("done, and the caller is gone")
say("ready")
server.serve_forever()
